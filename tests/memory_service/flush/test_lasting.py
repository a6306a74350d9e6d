"""What is kept of a sentence that a user says by itself: wishes and facts of oneself; what tells nothing is left."""

from __future__ import annotations

import pytest

from tests.memory_service.flush.stretches import texts

KEPT = """
记住：我的快递请一直放在门卫室。
以后快递都放在门卫室。
我住在格拉茨。
请记住，我的车牌号是沪A12345。
记住我不吃辣。
帮我记一下，下次体检是5月8日。
别忘了我女儿的生日是6月3日。
记住我姐姐叫林岚。
我要你记住：报销单交给财务的小陈。
记得我家的狗怕打雷。
以后叫我阿杰就行。
以后请用英文回复我。
从现在起，周报发给王经理。
从今天开始，所有发票抄送会计。
今后会议都安排在上午。
每次部署前先跑测试。
每周五下午不要给我排会议。
回复我时请用简体中文。
我在西门子上班。
我是做后端开发的。
我是左撇子。
我今年三十五岁。
我叫林小满。
我的职业是护士。
我家在杭州西湖区。
我来自成都。
我对海鲜过敏。
我吃素。
我有糖尿病。
我有两个孩子。
我有一只猫，叫豆豆。
我太太是老师。
我老公在银行工作。
我儿子在读小学三年级。
我的生日是3月14日。
我们的结婚纪念日是10月2日。
我最喜欢的颜色是绿色。
我比较喜欢靠窗的座位。
我不喜欢被打电话。
我平时骑车上班。
我每天早上六点起床。
我的手机号码已经换了，新的是13800001111。
我會說德語和法語。
我住在台北。
请称呼我为陈博士。
我偏好深色模式。
Remember: my parcels always go to the porter's lodge.
Remember that my parcels go to the porter's lodge.
From now on leave parcels at the porter's lodge.
I live in Graz.
I work at Siemens.
I work as a nurse.
I'm a backend developer.
I am left-handed.
I'm 35 years old.
My name is Lena Moser.
Call me Jay.
My daughter is six.
My wife is a teacher.
My son goes to primary school.
I have two kids.
I have a cat called Momo.
I'm diabetic.
I'm lactose intolerant.
I can't eat gluten.
I'm vegan.
My birthday is on 14 March.
Our anniversary is 2 October.
My favorite color is green.
I prefer window seats.
I don't like phone calls.
I like my coffee black.
I love jazz.
I speak German and French.
I grew up in Porto.
I come from Chile.
I usually cycle to work.
I get up at six every morning.
Please remember that I don't drink alcohol.
Don't forget that my passport expires in June.
Keep in mind that I use a wheelchair.
Note that our office has no lift.
Always answer me in English.
From now on, keep answers short.
Whenever you write dates, use ISO format.
Reply to me in German.
In future, send invoices to Anna.
Every time you deploy, run the tests first.
My car's plate is G 123 AB.
My locker is number 17.
From now on: answer in English.
Remember: I am allergic to nuts.
My address: Lendplatz 4, Graz.
我住在台北，平時騎車上班。
請記住，我對花生過敏。
從現在起，週報發給王經理。
以後快遞都放在門衛室。
I'm Austrian.
I live in Graz, and I work at Siemens.
Because I live in Graz, I need local suppliers.
I'm allergic to nuts, can you suggest a dessert?
Kim owns billing.
The owner of backups is Mara.
We use Postgres 16.
The invoices project is led by Noor.
备份由林负责。
密码轮换由运维负责。
我们的数据库是 Postgres 16。
My mom's name is Ruth.
我是程序员。
我和太太住在上海。
我在一家医院当护士。
我家有三口人。
我不喝咖啡。
我们公司在深圳。
我上班的地方在中关村。
请用中文回答我。
以后别在周末给我打电话。
周末不要打扰我。
Our son is called Felix.
We live in a flat with two cats.
We have a dog.
I moved to Graz in 2020.
My husband and I live in Linz.
Send my invoices to anna@example.org in future.
Our office has no lift.
I go to the gym on Mondays.
"""
LEFT = """
The error is a KeyError.
It is owned by Kim.
The test uses a mock.
The price is fine.
The owner is Mara.
Use the other file.
这个价格太高了。
错误是 KeyError。
Question 0
Question 12
Part 3
Step 2:
Item 7
Option B
Chapter 4
Message 17
Line 40
Test 5 of 10
Note 3
Section 2.1
第3题
问题 0
第一步
选项二
消息 12
测试 3
好的，记住了。
记住了。
我记得。
你还记得吗？
我忘了。
以后再说。
以后吧。
我在。
我在想。
我在看。
我在等。
我来了。
我有一个问题。
我有点累。
我是说真的。
我是认真的。
我喜欢这个。
我很喜欢！
没问题，以后再聊。
从现在起加油！
我住这里吗？
I remember.
Do you remember?
I'll remember that.
I forgot.
Remember?
I have a question.
I'm tired.
I'm here.
I'm not sure.
I'm fine.
I live for this!
I like it.
I love it!
I work on it.
I have an idea.
I work too much.
My bad.
My fault.
My turn.
My pleasure.
Always happy to help.
From now on it works.
That's my favorite!
Never mind.
Note to self.
Hello there 5
Run 3
Try 2
ok 1
message number 12
word word word
My code is broken.
I like the new design.
I don't like this approach.
I love your suggestion.
Can you remember the name?
Remember when we met?
Translate into German: I live in Graz.
Where do I live?
If I lived in Graz it would be easier.
Tell me where I live.
I have a lot to do.
I'm a bit tired.
I'm a little lost here.
I use this function here.
I play with it.
I speak from experience.
I'm sorry.
I am Sorry.
I'm Done.
call me back
Call me later.
I never said that.
Don't worry.
Don't forget it!
Note to self: nothing.
每次都这样。
每次都是我。
以后再看吧。
以后会好的。
以后可以再讨论。
我在想工作的事。
我的问题是为什么。
老板叫我去开会。
他问我住在哪里。
我爱你。
我怕了。
我不说了。
我不吃了。
我去吃饭。
我是不是错了。
我叫了外卖。
记得就好。
我记住了。
你记住了吗？
谢谢你记得我。
我会写的。
我有人了。
叫我干嘛。
我们家见。
我每天。
我在家。
我有空。
"""


@pytest.mark.parametrize("said", KEPT.strip().splitlines())
def test_wishes_and_facts_of_oneself_are_kept(said: str) -> None:
    (kept,) = texts(f"u {said}")
    assert kept.startswith(("User", "用户"))
    assert kept.endswith(said)


@pytest.mark.parametrize("said", LEFT.strip().splitlines())
def test_what_tells_nothing_by_itself_is_left(said: str) -> None:
    assert texts(f"u {said}") == []


@pytest.mark.parametrize("said", ["I live in Graz.", "我住在格拉茨。"])
def test_an_assistant_has_no_life_to_remember(said: str) -> None:
    assert texts(f"a {said}") == []


@pytest.mark.parametrize(
    "said", ["She wrote: “I live in Graz.”", "Summarise this page:\nI live in Graz.", "他说：“我住在格拉茨。”"]
)
def test_words_of_others_are_no_facts_of_the_user(said: str) -> None:
    assert texts(f"u {said}") == []


@pytest.mark.parametrize(
    ("asked", "answered"), [("Which room?", "Room 12"), ("Which part?", "Part 3"), ("第几题？", "第3题")]
)
def test_a_label_that_answers_is_kept_with_its_question(asked: str, answered: str) -> None:
    (kept,) = texts(f"a {asked}", f"u {answered}")
    assert asked in kept
    assert kept.endswith(answered)


def test_what_lasts_comes_before_other_facts_of_a_long_stretch() -> None:
    filler = [f"u The worker {at} moved {at + 7} rows of table T-{at} to Bergen in May 2026." for at in range(60)]
    lasting = ["Remember that my parcels go to the porter's lodge.", "我住在格拉茨。", "以后快递都放在门卫室。"]
    kept = " ".join(texts(*filler[:30], *(f"u {said}" for said in lasting), *filler[30:]))
    assert [said for said in lasting if said not in kept] == []
