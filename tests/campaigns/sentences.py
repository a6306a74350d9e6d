"""Sentences made from templates in many languages, as notes and pages have them, and as nobody should write them.

Of each template a place is filled with a thing, a name, a day or a number, and now and then with something odd: digits
of other scripts, days that no calendar has, halves of characters, numbers without end.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

_FORMS = """
X is TOOL {long}
The {thing} is {tool} with a long list of {long} that nobody has ever read in full.
A virtual {thing} is a self-contained {tool} that allows you to isolate {long}.
Our {thing} is {tool} and the {thing} is {tool} and the {thing} is {tool} and logs go to {tool}
Our {thing} site is {tool} {tool} and version control is managed via a public {thing}.
We switched from {tool} to {tool} for {long}.
{name} is the owner of {thing}, not {name}.
{name} moved from {odd} to {odd} on {day}.
{name} no longer uses {tool}{odd}
{name}: {odd}
- {thing}: {odd}
{thing} = {odd} -> {odd}
The {thing} was pushed from {day} to {day}, {odd}.
The {thing} costs {odd} {odd} as of {day}.
We meet {day} at {odd}.
Not the same: {odd} and {odd}
[{day}] {name}: {long}
What happened {day}?
When did {name} see {thing} {odd} days ago?
Hi {name}! Hello, {odd}
Remember that {long}.
Always use {tool} for {thing}. Never {long}.
We decided: {long}
My {thing} password is {odd}{odd}
Error: {thing} failed with exit code {odd}
| {thing} | {odd} | {day} |
```
{odd} {long}
```
> {name} wrote: {long}
## {day} {odd}
我们的{thing}是{tool}，{thing}换成{tool}了，{odd}
{name}从{odd}搬到了{odd}，新电话是{odd}。
会议从{day}改到{day}，负责人是{name}。
我不喝{thing}了，现在喝{odd}。
Unsere {thing} ist {tool} und der {thing} läuft seit {day} auf {odd}.
{name} wohnt jetzt in {odd}, früher in {odd}.
データベースは{tool}です。会議は{day}に変更、{odd}。
База данных теперь {tool}, а {thing} у {name} с {day}: {odd}.
قاعدة البيانات هي {tool} منذ {day} و{odd}
데이터베이스는 {tool}이고 {name}은 {day}부터 {odd}
La base de données est {tool}, {name} habite à {odd} depuis {day}.
El puerto de {thing} es {odd} y no {odd}.
ฐานข้อมูลคือ {tool} {odd}
מסד הנתונים הוא {tool} {odd}
{odd}{odd} {odd}
"""
_PARTS = {
    "thing": "database editor cache port deadline phone address owner budget language server 数据库 编辑器 端口 Frist",
    "tool": "Postgres Vim Redis SQLite Obsidian Python Kubernetes VSCode React Rust GitHub Slack 微信 Neovim TOOL",
    "name": "Kim Ana Łukasz 王芳 小李 I We Mia-Berg O'Neil Søren Иван محمد 田中 user",
    "day": "today Monday 2026-11-25 0000-00-00 9999-12-31 0001-01-01 2026-02-30 31.02.2026 29.2.1900 明天 завтра "
    "غدا Feb_31 99999年99月99日 W54_2026 5_May last_week in_99999999999_years 前九千九百九十九年 ² 30.Februar",
}
_ODD = (
    *"² ٣ १२ ５ Ⅳ ½ 〇 百万亿 1e999 -0 25:61 24:00 1.2.3.4.5 1,2,3 €1.234,56 #L9 C:\\x @ -- … ： ？ 、 $ %".split(),
    *("\ufffd", "\u202e", "\u200b", "İ", "ß", "ﬁ", "e\u0301", "👩‍👩‍👧", "\t", "a" * 3_000, "9" * 40, "9" * 5_000),
)
_WORDS = (
    "plugins that nobody reads and some of them were written long ago by people who left the company in spring".split()
)


def sentences(seed: int) -> Iterator[str]:
    """Sentences without end."""
    chance = random.Random(seed)
    forms = _FORMS.replace("```\n{odd} {long}\n```", "```{odd} {long}```").strip().split("\n")
    while True:
        yield chance.choice(forms).format_map(_Filler(chance))


class _Filler(dict[str, str]):
    """Table of what fills a place, something else each time."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance = chance

    def __missing__(self, place: str) -> str:
        if place == "long":
            return " ".join(self._chance.choices(_WORDS, k=self._chance.randint(1, 40)))
        if place == "odd":
            # The longest ones are rare, as they would be most of the text.
            odd = self._chance.choice(_ODD)
            return odd if len(odd) < 100 or self._chance.random() < 0.02 else odd[:30]
        return self._chance.choice(_PARTS[place].split()).replace("_", " ")
