"""Words of facts of English: data alone."""

from indexer.language.base import Clauses, Nouns, Values

_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"

ENGLISH_CLAUSES = Clauses(
    clause_ends=(
        r"(?<=[.!?])(?<!\b[DM]r\.)(?<!\bMs\.)(?<!\bMrs\.)(?<!\bSt\.)[\""
        r"'”’)]?\s+(?=["
        r"\""
        r"'“(\[]?[A-Z0-9\u4e00-\u9fff])|,?\s+(?:but|and|so|then)\s+(?=(?:(?:I|we|she|he|they|it) )?(?:now"
        "|no longer|currently|instead|(?:works?|lives?|uses?|prefers?|moved|joined|switched|owns?|costs?|drives?"
        r"|stud(?:y|ies)|plays?|is|are|am)\b))|,\s+(?=[A-Z][a-z]+ (?:is|took|takes|now|has)\b)|,\s+(?=(?:now"
        r"|currently|she|he|they|I|we|it|no longer)\b)|,\s+(?=(?:my|our|his|her|their|the) (?:[\w-]+ ){1,3}(?:is"
        r"|are) now\b)|(?:,|,? and)\s+(?=(?:my|our|his|her|their) [\w-]+ is\b)"
    ),
    reported_or_asked=(
        r"[\"”」],?\s*(?:said|says|asked|joked|claimed|wrote)\b|\b(?:said|says|joked|claimed|wrote)[,:]?\s*[\"“]"
    ),
    corrections=(
        "change of plans?|plans? changed|correction|corrected|update[ds]?|edit(?:ed)?|errat(?:um|a)|fix"
        "|change[ds]?|news|rename[ds]?|actually|from now on|going forward|henceforth|as of (?:now|today)"
    ),
    openings=(
        "please|so|well|ok|okay|fyi|btw|note|heads[- ]up|reminder|fact|good news|also note|and|but|then|remember"
        r"|today|yesterday|recently|last \w+|this \w+|decided|decision|since \w+"
    ),
    as_of=(r"\b(?:as of|since|effective|from|on)\s+(\d{4}-\d{2}-\d{2})\b,?"),
    in_year=(r"\b(?:in|until|till) ((?:19|20)\d\d)\b"),
    now=(
        r"\b(?:now|no longer|any ?more|instead|nowadays|these days|from now on|going forward|henceforth"
        r"|correction|starting)\b"
    ),
    not_same=("not the same(?: thing)?|both (?:are true|hold)|different things"),
    speaks=(r"(?:.*\s)?(?:I|[Ww]e|[Mm]y|[Oo]ur)\b"),
    genitives=(r"\b(?:of|for)\b|['’]s\b"),
    turns=("user|human|assistant|ai|system|tool|q|a"),
    former=("was|formerly|previously|before|not"),
    former_words=(r"\b(?:formerly|previously) \w+$"),
    somebody=(r"\b(?:he|she|it|they|him|her|his|their|its|this|that|these|those|there|you|your|one)\b"),
    of_value=(
        "was|were|formerly|previously|before|since|from|as of|until|till|now|new|currently|updated|changed|about"
        r"|approx|ca|per|incl\w*|excl\w*|not|no longer|instead|up|down|starting|effective|confirmed|tbc|see"
        r"|used to|old|replac\w+|moved"
    ),
    change_logs=("change[-_ ]?log|changes|history|releases?|release[-_ ]?notes|news"),
    hedges=(
        r"if|would|could|might|maybe|perhaps|possibly|probably|consider\w*|thinking (?:of|about)|wonder\w*"
        r"|plan(?:s|ned)? to|planning|wants? to|would like|hop(?:es?|ing) to|wish\w*|should|unless|whether"
        r"|used to|formerly|previously|originally|initially|back then|at the time|suppose|imagine|e\.g|propos\w+"
        r"|suggest\w*|discuss\w*|decide (?:if|on)|not sure|rumou?r|also|too|as well|another|second(?:ary)?"
        "|additionally|besides|either|sometimes|occasionally|part[- ]time|on weekends|in (?:summer|winter"
        "|the (?:summer|winter|morning|afternoon|evening))|during|when (?:i|we|she|he|they) (?:was|were)"
        r"|as a (?:child|kid|student|teenager)|tried|trying|try|evaluat\w+|test(?:ed|ing)|learned|almost|nearly"
        r"|never|every other|alternat\w+|visiting|visited|temporarily|(?<!years )(?<!year )old|former|previous"
        r"|fallback|draft of|backup (?:\w+ )?(?:phone|number|email|address|server|host|owner|contact|editor"
        "|database|plan)"
    ),
)

ENGLISH_NOUNS = Nouns(
    former=(r"^(?:the |our |my )?(?:old|previous|former|original|initial|first|next|last|other|another|alternative)\b"),
    new=(r"^(?:the |our |my )?(?:new|latest|updated)\b"),
    definite=(r"^(?:the|our|my|your|his|her|their|its)\b|['’]s?\s|\bof\b"),
    me=frozenset("i me mine my user".split()),
    attributes={
        "location": ("location", "city", "residence"),
        "employer": ("employer", "workplace"),
        "owner": ("owner", "ownership", "dri", "code owner"),
        "maintainer": ("maintainer",),
        "lead": ("lead", "leader", "team lead", "tech lead"),
        "manager": ("manager", "boss", "supervisor"),
        "assignee": ("assignee", "reviewer"),
        "oncall": ("on-call", "oncall"),
        "ceo": ("ceo", "chief executive"),
        "cto": ("cto",),
        "cfo": ("cfo",),
        "captain": ("captain",),
        "price": ("price", "cost", "fee", "pricing", "rent"),
        "salary": ("salary", "wage"),
        "deadline": ("deadline", "due date", "cutoff", "cut-off"),
        "day": ("date", "day"),
        "time": ("time", "start time"),
        "status": ("status", "state", "phase", "stage"),
        "version": ("version",),
        "port": ("port",),
        "phone": (
            "phone",
            "phone number",
            "telephone",
            "telephone number",
            "tel",
            "cell",
            "cell phone",
            "mobile",
            "mobile number",
            "number",
        ),
        "email": ("email", "e-mail", "mail", "email address", "e-mail address"),
        "address": ("address",),
        "name": ("name", "nickname", "username", "handle", "codename", "code name"),
        "password": ("password", "passcode", "passphrase", "pin"),
        "url": ("url", "website", "site", "domain", "endpoint", "base url"),
        "host": ("host", "hostname", "ip", "ip address", "server"),
        "region": ("region", "zone"),
        "timezone": ("timezone", "time zone", "tz"),
        "database": ("database", "db"),
        "cache": ("cache",),
        "queue": ("queue", "message queue", "broker", "message broker"),
        "framework": ("framework",),
        "target": ("target",),
        "environment": ("environment", "env"),
        "branch": ("branch",),
        "editor": ("editor", "ide"),
        "browser": ("browser",),
        "os": ("os", "operating system"),
        "shell": ("shell",),
        "theme": ("theme",),
        "font": ("font",),
        "package manager": ("package manager",),
        "formatter": ("formatter",),
        "linter": ("linter",),
        "model": ("model",),
        "provider": ("provider", "host provider", "hosting", "hosting provider"),
        "runtime": ("runtime",),
        "ci": ("ci", "ci system"),
        "license": ("license", "licence"),
        "budget": ("budget",),
        "limit": ("limit", "quota", "rate limit"),
        "timeout": ("timeout",),
        "threshold": ("threshold",),
        "interval": ("interval", "frequency"),
        "rate": ("rate", "interest rate"),
        "contact": ("contact", "point of contact"),
        "method": ("payment method",),
        "language": ("language preference", "preferred language"),
        "pronouns": ("pronouns",),
        "landlord": ("landlord", "landlady"),
        "length": ("length", "duration"),
        "size": ("size",),
        "headcount": ("headcount", "team size"),
        "capacity": ("capacity",),
        "priority": ("priority", "severity"),
        "role": ("role", "position", "job", "job title", "title"),
        "department": ("department",),
        "school": ("school", "university", "college"),
        "spouse": ("spouse", "husband", "wife"),
        "partner": ("boyfriend", "girlfriend", "fiance", "fiancé", "fiancée"),
        "weight": ("weight",),
        "height": ("height",),
        "age": ("age",),
        "birthday": ("birthday", "birth date", "date of birth"),
        "currency": ("currency",),
        "plan": ("plan", "tier", "subscription"),
        "room": ("room", "meeting room", "venue", "seat", "gate", "desk"),
        "color": ("color", "colour"),
        "slogan": ("slogan", "tagline", "motto"),
        "diet": ("diet",),
        "hours": ("hours", "opening hours", "office hours", "business hours"),
        "cadence": ("cadence", "schedule"),
    },
    kinds={
        "drink": "tea coffee espresso latte cappuccino matcha water juice beer wine cola decaf",
        "editor": (
            "vim neovim nvim emacs vscode code helix zed sublime cursor intellij pycharm nano atom webstorm goland"
        ),
        "package manager": "npm yarn pnpm bun pip poetry uv pipenv conda cargo rye pdm hatch",
        "database": (
            "postgres postgresql mysql mariadb sqlite mongodb mongo cockroachdb oracle dynamodb duckdb clickhouse"
            " tidb cassandra"
        ),
        "cache": "redis valkey memcached dragonfly keydb",
        "queue": "rabbitmq kafka sqs nats pulsar redpanda celery sidekiq",
        "host": "heroku fly.io fly render vercel netlify aws gcp azure railway hetzner digitalocean cloudflare linode",
        "language": "python java javascript typescript rust go golang ruby kotlin swift php elixir scala c++ c# zig",
        "frontend": "react vue svelte angular solid preact htmx ember",
        "web framework": "django flask fastapi rails express nestjs spring laravel starlette litestar",
        "chat": "slack teams discord telegram whatsapp signal mattermost",
        "video": "zoom meet webex google-meet",
        "channel": "email phone call calls text sms chat letter",
        "browser": "chrome firefox safari edge brave arc vivaldi opera",
        "os": "windows linux macos mac ubuntu debian fedora arch nixos",
        "shell": "bash zsh fish nushell powershell",
        "tracker": "jira linear asana trello github-issues monday notion clickup shortcut youtrack tapd",
        "notes": "notion obsidian evernote roam logseq onenote bear",
        "forge": "github gitlab bitbucket gitea codeberg gitee forgejo",
        "ci": "jenkins circleci travis github-actions buildkite drone teamcity",
        "indent": "tabs spaces tab space",
        "seat": "aisle window",
        "theme": "dark light",
        "daytime": "mornings morning afternoons afternoon evenings evening nights night",
        "units": "metric imperial celsius fahrenheit",
        "transport": "car bike bus train subway tram metro plane bicycle",
        "payment": "visa mastercard paypal cash amex",
        "bundler": "webpack vite rollup esbuild parcel turbopack rspack",
        "formatter": "black ruff prettier biome yapf autopep8 gofmt",
        "linter": "flake8 pylint eslint tslint oxlint",
        "tests": "jest vitest mocha pytest unittest nose karma cypress playwright selenium",
        "cloud ai": "openai anthropic gemini claude gpt-4 gpt-4o mistral llama qwen deepseek chatgpt",
        "search": "elasticsearch opensearch solr meilisearch typesense",
        "design": "figma sketch xd penpot photoshop",
        "analytics": "mixpanel amplitude posthog plausible matomo",
        "proxy": "nginx caddy traefik haproxy apache envoy",
        "monitoring": "datadog grafana newrelic sentry prometheus honeycomb zabbix",
        "containers": "docker podman kubernetes nomad swarm",
        "phone": "iphone android pixel samsung galaxy",
        "bank": "revolut wise n26 monzo chase",
        "diet": "vegan vegetarian pescatarian keto paleo omnivore",
        "music": "spotify tidal deezer",
        "password manager": "1password bitwarden lastpass keepass dashlane",
    },
    one_at_a_time={
        "relationship": "single married engaged divorced widowed separated",
        "employment": "employed unemployed retired",
        "switch": "on off",
        "visibility": "public private internal",
        "payment": "paid unpaid overdue refunded",
        "level": "low medium high critical",
        "health": "sick ill healthy recovered",
        "color": "red green blue yellow black white grey gray orange purple pink brown beige",
    },
    stop_words=frozenset(
        (
            "a an and are as at current currently for her his in is its latest new now of on our that the their t"
            "his to today us we your"
        ).split()
    ),
    pronouns={
        **dict.fromkeys(("we", "us", "our team", "the team", "the company", "team", "everyone"), "@we"),
        **dict.fromkeys(("he", "him"), "@he"),
        **dict.fromkeys(("she", "her"), "@she"),
        **dict.fromkeys(("they", "them"), "@they"),
        **dict.fromkeys(("it", "this", "that"), "@it"),
    },
    of="of|for|on|at|in",
    one_of=frozenset("default favorite favourite main preferred primary".split()),
    classes=frozenset("app application module plan product project repo repository service system team tool".split()),
    issues=frozenset("bug issue story task ticket".split()),
    money=frozenset("cent cents dollar dollars eur euro euros gbp pence pounds rmb usd yuan".split()),
    no_values=frozenset(
        "her here him it me n/a na no none null ok okay open? same same-as-before tba tbc tbd that the-same "
        "them there this true-ish unclear undecided unknown us yes you".split()
    ),
    generic=frozenset(
        "about agenda basics call calls change changelog changes config configuration context conversation "
        "daily decision decisions detail details fact facts friday general history important info "
        "information interview interviews journal key learned log logs meeting meetings memories memory misc "
        "monday note notes observations overview personal preference preferences profile project projects "
        "reference references retro retrospective review saturday session setting settings setup stand "
        "standup status summary sunday sync tasks things thursday today todo todos tuesday up update updates "
        "user wednesday weekly work yesterday".split()
    ),
    grammar=frozenset(
        "am and are as at be by do does for from has have he her his i in is it its me must my not of on or "
        "our she that their these they this those to us was we were will with you your".split()
    ),
)

ENGLISH_VALUES = Values(
    least_or_most=("at least|at most|up to|about|around"),
    numerals=(r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b"),
    scales=("k|m|bn"),
    per=("per|a|an"),
    periods=(
        r"(?:/|\b(?:per|an?|each|every)) ?(minute|hour|day|night|week|month|quarter|year|person|user|seat|head"
        "|kg|kilo|liter|litre)"
    ),
    corrects=(
        r"\s*[,(（，]?\s*\b(?:was|were|formerly|previously|before (?:it was|that)|used to be|instead of"
        r"|rather than|in place of|no longer|not|up from|down from|replacing|changed from|moved from)\b.*$"
    ),
    fresh=("now|at present|from now on|already|officially|back (?:to|in|at)"),
    lead=("currently|actually|only|just|set to|still|probably the|the"),
    days=(
        r"\b(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?s?\b|\b\d{1,2}(?:st|nd|rd"
        rf"|th)? (?:of )?(?:{_MONTHS})|\btomorrow\b|\b(?:{_MONTHS}|january|february|march|april|june|july|august"
        r"|september|october|november|december)\b|\bq[1-4]\b|\bnext (?:week|month|year|quarter)\b|\bweekend"
    ),
    hours=(r"\b\d{1,2} ?(?:am|pm|a\.m|p\.m|o['’]clock)\b|\bnoon\b|\bmidnight\b"),
    before_day=("the|next|this|every|each|early|late|mid|end of|around|about|on|at|by|half past|week of|of"),
    day_signs=("st|nd|rd|th"),
    late=(
        "now|again|instead|for now|from now on|going forward|these days|nowadays|any ?more|already|at the moment"
        "|once more"
    ),
    cuts=(
        "because|since|as of|after|so that|until further|thanks to|due to|starting|effective|according to|per our|which"
        "|who|where|while|although|though|but"
    ),
)
