"""Facts that a text states, in wordings of people and agents."""

from __future__ import annotations

import pytest

from indexer.language.facts import facts_of
from indexer.language.facts_frame import is_frame
from tests.growth import at_most_readings


def claims(text: str, *, heading: tuple[str, ...] = (), path: str = "memory/2026-01-02.md") -> dict[str, str]:
    """Values by thing, without those that are one value, and without those of clauses as they stand."""
    found = facts_of(text, heading, None, path).claims
    return {claim.thing: claim.value for claim in found if "=" not in claim.thing and not is_frame(claim.thing)}


@pytest.mark.parametrize(
    ("old", "new", "thing"),
    [
        ("Ana lives in Lisbon", "Ana moved to Porto last week", "ana|location"),
        ("Owner of billing: Kim", "Lee took over billing from Kim", "billing|owner"),
        ("The Pro plan costs $19", "The price of the Pro plan is now $29 (was $19)", "pro|price"),
        ("PR 12 is open", "status of PR 12: merged", "12 pr|status"),
        ("The meeting is on Tuesday", "The meeting moved to Thursday", "meeting|day"),
        ("我住在北京", "我搬到杭州了", "@me|location"),
        ("项目负责人是韩梅梅", "项目负责人改成李雷", "项目|owner"),
        ("价格：79 元", "价格调整为 99 元", "|price"),
        ("会议在周二", "会议改到周四", "会议|day"),
        ("Ana is single", "Ana got married in June", "ana|relationship"),
        ("The API is at version 2.3", "The API has been bumped to version 3.0", "api|version"),
        ("The cache TTL is 300 seconds", "We raised the cache TTL to 900 seconds", "cache ttl|amount second"),
        ("My dentist is Dr. Huang", "My new dentist is Dr. Silva", "dentist|who"),
        ("Log level is set to INFO", "Log level was switched to DEBUG", "level log|setting"),
        ("Default timeout: 30s", "Default timeout changed: 30s -> 60s", "default|timeout"),
        ("Ana goes to the gym three times a week", "Ana goes to the gym five times a week now", "ana goe gym|cadence"),
        ("Leo's boss is Karen", "Leo reports to Ahmed now", "leo|manager"),
        ("小刘单身", "小刘结婚了", "小刘|relationship"),
        ("三季度市场预算是40万", "三季度市场预算削减到25万", "三季度市场|budget"),
        ("我的牙医是黄医生", "我的牙医换成了何医生", "我的牙医|who"),
        ("发票3391未付款", "发票3391已付款", "3391 发票|status"),
        ("他在阿里工作", "他现在在腾讯工作", "@he|employer"),
        (
            "The release of Osprey is booked for 3 May",
            "The release of Osprey was pushed back to 9 May",
            "osprey release|day",
        ),
        ("The token is renewed every 6 hours", "The token is now renewed every 12 hours", "renewed token|cadence"),
        ("The PIN at the depot is 4471", "The PIN at the depot changed to 9902", "depot|password"),
        ("Standup is in room 4B", "Standup moved to room 2A", "standup|room"),
        ("I work at Acme", "We left José’s office, now I’m working at Bosch", "@me|employer"),
        ("Jun rents a flat in Graz", "Jun sold his bike, now lives in Linz", "jun|location"),
        ("Code freeze: 1 August", "The code freeze was deferred to 8 August", "code freeze|day"),
        ("The rent is $1,200", "The rent is now $1,950", "|price"),
        ("The issue PAY-9 is assigned to Eva", "PAY-9 was reassigned to Milo", "9 pay|owner"),
        ("The term ends on Monday", "The term now ends on Friday", "close term|day"),
        ("Opening hours are 9 to 5", "Opening hours are now 8 to 4", "|hours"),
        ("The tent is in the attic", "The tent is in the garage now", "tent|place"),
        ("The ticket is 20 euros for adults", "The ticket for adults is 25 euros", "adult ticket|price"),
        ("渡轮6:30开", "渡轮改到7:15开", "开 渡轮|cadence"),
        ("小米上三年级", "小米现在上四年级了", "小米|grade"),
        ("账本用 MySQL", "账本从 MySQL 迁移到 Postgres 了", "@we 账本|use"),
        ("Answer me in English", "Reply in German from now on", "@me|language"),
        ("The shop is open until 8", "The shop is now open until 9", "close shop|time"),
        ("我们的会计是范先生", "我们的新会计是欧女士", "我们的会计|who"),
        ("小周租住在浦东", "小周搬家了，现在住在闵行", "小周|location"),
        ("奶奶的电话是62345678", "奶奶换号了，新电话是68765432", "奶奶|phone"),
        ("密钥每30天轮换一次", "密钥现在每90天轮换一次", "密钥 轮换|cadence"),
        ("航班11:20起飞", "航班改到13:05起飞", "航班 起飞|cadence"),
    ],
)
def test_two_wordings_are_of_one_thing(old: str, new: str, thing: str) -> None:
    assert claims(old)[thing] != claims(new)[thing]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("web1 runs Debian 11", "web2 runs Debian 12"),
        ("We upgraded Redis to 7 on staging", "We upgraded Redis to 6 on prod"),
        ("The server is called hades", "The server is now reachable over IPv6"),
        ("Our CTO is Lena", "Our CTO is on leave"),
        ("The password is plum3", "The password is 16 characters long"),
        ("The password is plum3", "The password is stored in the safe"),
        ("Demo is at 9:30", "Yesterday the demo was at 10:00"),
        ("Ana is based in Bonn", "Ana was based in Leiden"),
        ("Pat lives in Reno", "Pat moved to Boise in 2011 and came back in 2014"),
        ("Pat works at Intel", "Pat got an offer from Bosch"),
        ("We use OAuth", "We no longer use OAuth for the admin panel"),
        ("I live in Kiel", "Nice call with Karl, now lives in Bonn"),
        ("The oven is set to 200 degrees in the bakery", "The oven is set to 180 degrees in the school"),
        ("My number is 555-1212", "Her number is 555-8888"),
        ("My number is 555-1212", "Lena called, her number is 555-8888"),
        ("My flight is on 3 June", "Your flight is on 5 June"),
        ("Our train is at 9:14", "Their train is at 9:40"),
        ("The fee is 20 euros for adults", "The fee is 12 euros for children"),
        ("车换轮胎了", "车换电池了"),
        ("我们用 OAuth", "管理后台不再用 OAuth"),
        ("今天跑了8公里", "今天跑了5公里"),
        ("芬芬现在7岁", "小马现在9岁"),
        ("小白住在成都", "小白2011年搬到重庆"),
        ("我住在成都", "妈妈身体不好，现在住在医院"),
        ("我住在成都", "我妈身体不好，现在住在医院"),
        ("我的电话是13911112222", "同事换号了，新电话是13833334444"),
        ("去东京的航班11:20起飞", "去京都的航班11:45起飞"),
        ("作业我已经交了", "报销我还没交"),
        ("厨房要换水龙头", "厨房要换门"),
    ],
)
def test_what_holds_beside_something_else_is_another_thing(old: str, new: str) -> None:
    before = {claim.thing: claim.value for claim in facts_of(old).claims}
    after = facts_of(new, (), None, "memory/2026-01-02.md").claims
    telling = [claim for claim in after if claim.single or claim.changes]
    assert not [claim for claim in telling if before.get(claim.thing, claim.value) != claim.value]


def test_a_title_with_a_number_is_one_of_several() -> None:
    assert claims("Status: open", heading=("Bug 12",)) == {"12 bug|status": "open"}
    assert claims("Status: open", heading=("3. Importer",)) == {"importer|status": "open"}
    assert not [
        claim for claim in facts_of("会议室：4", ("周会",), None, "").claims if claim.single and "=" not in claim.thing
    ]


@pytest.mark.parametrize(
    ("text", "ended"),
    [
        ("We switched from Redis to Valkey", "@we|use=redis"),
        ("I no longer use vim; I use Helix", "@we|use=vim"),
        ("以后用 pnpm，不用 npm 了", "@we|use=npm"),
        ("Ana does not live in Porto", "ana|location=porto"),
        ("Paul doesn't drink coffee anymore", "paul|drink=coffee"),
        ("老保不喝咖啡了", "老保|drink=咖啡"),
        ("Rename: project Foo is now called Bar", "|name=foo"),
        ("I hate Chinese food.", "@me|like=chinese food"),
        ("I do not like coffee anymore", "@me|like=coffee"),
        ("我不喝咖啡了，现在喝茶。", "@me|drink=咖啡"),
    ],
)
def test_a_word_of_change_ends_what_it_names(text: str, ended: str) -> None:
    off = {claim.thing for claim in facts_of(text).claims if claim.value == "off"}
    assert {thing for thing in off if not is_frame(thing)} == {ended}


@pytest.mark.parametrize(
    "text",
    [
        "Does Ana live in Porto?",
        "Ana would like to live in Porto",
        "Ana used to live in Porto",
        "Ana moved to the next task",
        "If the port is 80, restart it",
        "小明想搬到杭州",
        "小明住在杭州吗？",
        "Kim works with Lee",
        '"The deadline is Monday," said Kim',
        "The database is slow",
        "Paula went to the dentist on Monday",
    ],
)
def test_what_is_asked_planned_or_past_is_no_fact(text: str) -> None:
    assert not claims(text)


def test_a_title_and_a_file_tell_what_a_line_is_about() -> None:
    assert claims("Owner: Kim", heading=("Billing service",)) == claims("Owner: Kim", path="memory/billing.md")


@pytest.mark.parametrize(
    "part",
    [
        "to ",
        "moved from a to ",
        "is now ",
        "用 改成",
        "Ana's ",
        "a: ",
        "x #L3 and ",
        "owner of ",
        "现在 。现在 现在 现在 现在 现在 现在 现在 现在 现在 现在 现在 现在 现在 现在 现在 现在 现在 现在 现在 ",
        "把从由改成",
        "x -> ",
        "the a was ",
        "x -> ",
        "isn't ",
        "把端口改成",
        "每周一",
    ],
)
def test_hostile_text_takes_linear_time(part: str) -> None:
    with at_most_readings(40):
        facts_of((part * 2_000)[:100_000])
        facts_of("Not the same: " + part * 2_000)


def frames(text: str, heading: tuple[str, ...] = ()) -> dict[str, tuple[str, bool]]:
    """What a text claims of clauses as they stand: values by thing, and whether a word says that they are new."""
    found = facts_of(text, heading, None, "memory/2026-01-02.md").claims
    return {claim.thing: (claim.value, claim.changes) for claim in found if is_frame(claim.thing)}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The API allows 60 requests a minute", "The API now allows 100 requests a minute"),
        ("The build takes 12 minutes", "The build is down to 7 minutes"),
        ("I sit at desk 14", "I sit at desk 22 now"),
        ("My physio sees me every Tuesday", "My physio now sees me every Thursday"),
        ("The alarm goes off at 6:45", "The alarm now goes off at 7:15 (was 6:45)"),
        ("The lease runs until 2027", "We extended the lease until 2029"),
        ("The fair is in May", "The fair is now in June"),
        ("Standby pay is 50 euros a day", "Standby pay went from 50 to 65 euros a day, says Ina"),
        ("Invoices are sent by Petra", "Invoices are now sent by Milan"),
        ("The photos are stored in Dropbox", "The photos are stored in Nextcloud now"),
        ("We meet in the blue room", "We no longer meet in the blue room"),
        ("Clara sings in the choir", "Clara doesn't sing in the choir anymore"),
        ("We order veg boxes from Greenacre", "We stopped ordering veg boxes from Greenacre"),
        ("备份保留30天", "备份现在保留90天"),
        ("闹钟6:45响", "闹钟改到7:15响"),
        ("学费每学期2,400元", "学费涨到每学期2,650元"),
        ("试点有40个用户", "试点用户增加到95个"),
        ("接口每分钟限60次", "接口每分钟限100次了"),
        ("我坐14号工位", "我现在坐22号工位"),
        ("租约到2027年", "租约延长到2029年"),
        ("周会由小林主持", "周会以后由小孟主持"),
        ("吉祥物是狐狸", "吉祥物换成猫头鹰了"),
        ("我们在蓝厅开会", "我们不在蓝厅开会了"),
        ("我们从绿田订菜", "我们不再从绿田订菜了"),
    ],
)
def test_clauses_that_differ_in_one_value_tell_of_one_thing(old: str, new: str) -> None:
    first, then = frames(old), frames(new)
    shared = [thing for thing in first.keys() & then.keys() if first[thing][0] != then[thing][0]]
    assert [(first[thing][1], then[thing][1]) for thing in shared] == [(False, True)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The night bus leaves from stop 12", "The airport bus now leaves from stop 15"),
        ("Bus 4 stops at the mill", "Bus 9 now stops at the mill"),
        ("Room 201 has a projector", "Room 305 has a projector now"),
        ("Chapter 2 has 14 pages", "Chapter 5 now has 20 pages"),
        ("Tom has 2 kids", "Tom now has 3 bikes"),
        ("Deploy took 9 minutes", "Deploy took 14 minutes"),
        ("He runs 5 km", "He now runs 8 km"),
        ("Iris is booked on flight 12", "Iris is now booked at the Ritz"),
        ("Windows are painted in green", "Doors are now painted in white"),
        ("Rosa coaches the under-12 team", "Rosa no longer coaches on Sundays"),
        ("4路车停磨坊站", "9路车现在停磨坊站"),
        ("201室有投影仪", "305室现在有投影仪了"),
        ("第2章有14页", "第5章现在有20页"),
        ("小安周一跑了5公里", "小安今天跑了8公里"),
        ("她跑5公里", "她现在跑8公里"),
        ("包裹由顺丰寄", "信件现在由邮局寄"),
        ("小李是四川人", "小李换成早班了"),
        ("我们从绿田订牛奶", "我们不再从绿田订鸡蛋了"),
    ],
)
def test_clauses_that_differ_in_more_tell_of_several_things(one: str, other: str) -> None:
    first, then = frames(one), frames(other)
    assert not [thing for thing in first.keys() & then.keys() if first[thing] != then[thing] and then[thing][1]]


def test_a_clause_as_it_stands_is_of_the_titles_above() -> None:
    assert frames("Water every 3 days", ("Fern",)).keys().isdisjoint(frames("Water every 7 days now", ("Ficus",)))


def test_to_like_drinking_something_is_to_like_it_and_to_drink_it() -> None:
    assert "@me|like=coffee" in {claim.thing for claim in facts_of("I like drinking coffee.").claims}
    assert "@me|drink=咖啡" in {claim.thing for claim in facts_of("我喜欢喝咖啡。").claims}


def test_a_price_holds_for_whom_it_is_said_of() -> None:
    adults, children = claims("The pool costs 5 euros for adults"), claims("The pool costs 3 euros for children now")
    assert "adult pool|price" in adults
    assert adults.keys().isdisjoint(children)
