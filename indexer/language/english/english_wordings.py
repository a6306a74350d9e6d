"""English wordings of facts, one a line, in the notation of `indexer.language.facts_clause`: data alone.

A line with `@` gives words a name, by which the lines below call them: `{moves}`.

A relation is an attribute with one value at a time, but for those that `english_claims` reads in a way of their own:
`attribute`, `use`, `prefer`, `succeeded`, `ended`, `renamed`, `called`, `status`, `role`, `location`, `employer`.
"""

import re

from indexer.language.fact_tables import Script

# "it's eu-west-1" tells what it is; "Ana's dog" does not, but "Ana's now in Porto" does.
_CONTRACTED = (
    r"['’](?:m|re)(?!\w)|(?:(?<=\bhe)|(?<=\bit)|(?<=\bshe)|(?<=\bthat))['’]s(?!\w)"
    r"|['’]s(?=\s+(?:now|currently|no longer)\b)"
)
_ADVERBS = (
    r"(?:(?:now|currently|presently|officially|recently|just|finally|already|still|again|back|over|permanently|entirely"
    r"|fully|completely|only)\s+)*"
)
_AUXILIARY = r"(?:['’](?:s|ve|re|m)|\s+(?:has|have|had|is|are|was|were|been|being|got|gets|will|be))*"
_ENGLISH_PARTS = {
    "F": r"(?P<f>[^,]{1,40}?)",
    "O": r"(?P<o>\S.{0,50}?)",
    "N": r"(?P<n>\S.{0,60}?)",
    "V": r"(?P<v>\S.{0,50}?)",
}
ENGLISH_SCRIPT = Script(
    gap=rf"\s+{_ADVERBS}",
    first_gap=r"\b",
    word_end=r"(?!\w)",
    parts=_ENGLISH_PARTS,
    # The subject is whatever stands before the first word.
    firsts={"S": "", **{name: f"^{part}{_AUXILIARY}" for name, part in _ENGLISH_PARTS.items()}},
    lasts={name: rf"(?P<{name.lower()}>\S.*)" for name in _ENGLISH_PARTS},
    end="",
    units=re.compile(r"[a-z]+|\d"),
    forms={"be": ("is", "are", "am", "was", "were", "been", "being"), "have": ("has", "have", "had")},
    contracted=_CONTRACTED,
    contractions=("s", "m", "re"),
)

ENGLISH_WORDINGS = """
@moves changed/moved/updated/raised/lowered/increased/decreased/dropped/reduced/cut/bumped/set/switched/pushed
@moves adjourned/deferred
@moves postponed/delayed/brought_forward/put_back/put_off/rescheduled/extended/shortened/upgraded/downgraded
@moves reassigned/transferred/handed/went/goes/gone/rose/risen/fell/fallen/grew/grown/climbed/jumped/shrank
@moves shrunk/shifted/slipped/doubled/halved/corrected/adjusted/expanded/migrated/flipped/turned/upped/renewed
@moves converted/revised/amended/restored/reverted/reset
@switches switch(ed)/switches/switching/migrated/migrates/migrating/transitioned/transitioning
@turns moved/moving/changed/changing/converted/converting/went/ported/swapped
@titles owner/maintainer/lead/leader/manager/ceo/cto/cfo/coo/head/director/assignee/captain/president/chair/boss
@titles contact/supervisor/dri/call
@diets vegan/vegetarian/pescatarian/omnivore/keto
@languages english/german/french/spanish/italian/portuguese/dutch/polish/russian/ukrainian/turkish/arabic/hindi
@languages chinese/mandarin/cantonese/japanese/korean/swedish/danish/norwegian/finnish/czech/greek/hebrew
@languages vietnamese/thai
@happens wake(s)_up/get(s)_up/goes_to_bed/go_to_bed/starts/start/begins/meets/meet/happens/happen/held/runs/run

attribute!    N ~become/became V
attribute!    N ~{moves} [up/down/out/back/forward] [from F] to/into/until/till/at/as V
attribute!    S ~{moves} N [from F] to/into/until V
attribute!    N be ~up/down/back [from F] to/at V
attribute:set N be ~set/fixed/capped/limited/pinned to/at/as V
attribute:on  N be ~set/scheduled/planned/booked/fixed for/on V
attribute     N ~stands at V
attribute     N be/will_be/equals/remains/becomes/stays V
length        S be V ~long
age           S be V ~years_old
height        S be V ~tall
weight        S ~weigh(s) V

language      S want(s)/wants_to_get/expect(s)/prefer(s)/like(s) ~answers/replies/responses in V={languages}
language:me   ~answer/reply/respond/write [to] [me] in V={languages}
name:me!      ~call me V
name          S ~goes/go by V
on:allergic   S be ~allergic to V
learning?     S ~learning/learns V
who?          S be ~with V
grade         S be ~in V
grade!        S ~started/starts/entered/finished V
room          S be/meets/held ~in room/meeting_room/conference_room V
room!         S ~moved/relocated/switched/changed to room/meeting_room/conference_room V
floor         S be ~on V floor
floor!        S ~moved/relocated to V floor
place?        S ~sleeps/sits/stands/hangs/kept/stored/parked in/on/at/under V
place?        S be ~in V
place?        S be ~at V
place?        S will_be/takes_place/held ~in V

location      S ~live(s)/living/reside(s)/residing [alone/together] in/at/out_of V
location      S ~rent(s)/renting a_flat/an_apartment/a_room/a_house in V
location      S ~based/located/headquartered in/at/out_of V
location!     S ~moved/relocated/moving/moves/emigrated/returned [home/away/out/offices/everything] [from F] to/into V

employer      S ~work(s)/working/employed at/for/by V
employer!     S ~joined/rejoined V
employer!     S ~started [a_job/a_new_job/working/work] at V
employer!     S ~hired by/at V
employer!     S ~got/took/found/accepted a_job/a_new_job/a_position at/with/from V
employer!     S ~took/accepted an_offer/the_offer/a_job_offer at/with/from V
employer!     S ~now at V
employer!     S ~switched/changed jobs/employers/companies to V
employer!     S ~went_back/gone_back/returned to V
employer!     S ~left/quit F for/to_join/and_joined/to_work_for/to_work_at/and_started_at V
ended         S ~left/quit/resigned_from V

manager       S ~report(s)/reporting to V
school        S ~study/studies/studying/enrolled at V
subject?      S ~study/studies/studying/majoring_in/majors_in V
vehicle?      S ~drive(s)/driving V
plan!         S ~upgraded/downgraded/switched/moved to V
plan          S ~on/pay(s)_for/paying_for/have/has/subscribed_to V

maintainer    V ~maintain(s) O
lead          V ~lead(s)/head(s)_up O
manager       V ~manage(s) O
owner         V ~own(s) O
owner         V be ~responsible_for/in_charge_of O
owner!        V ~took/takes/taken/taking over O from F
owner!        V ~took/takes/taken/taking over O
maintainer    O ~maintained by V
lead          O ~led/headed by V
manager       O ~managed by V
owner         O ~owned/handled/run by V
owner         O ~assigned/allocated to V
owner!        O ~taken over_by V
owner!        S ~handed/passed/transferred/reassigned/gave [over/off] O [ownership] [over/off] to V
owner!        O ~handed/passed/transferred/reassigned/given [over/off] to V

holder        V be N ?{titles}
holder!       V ~became/become/becomes/named/appointed/made N

price         S ~cost(s)/priced_at/sell(s)_for/retail(s)_at/goes_for V
deadline      S be ~due [on/by/at] V
port          S ~run(s)/running/listen(s)/listening/serve(s)/served/available/starts on/to port V
target:tool   S ~lives/live/sits/kept/stored on/at/in V
target        S ~deploy(s)/deployed/deploying/hosted/hosting/host/ship(s)/publish(es)/published to/on/at/with V
when:open     S ~opens/open [daily] [on] at V
when:close    S ~closes/close/ends/end/finishes/finish [daily] [on] at V
when:close    S ~closes/ends/end/finishes/finish on V
when:close    S be ~open until/till V
when:leave    S ~departs/leaves/leave at V
when:arrive   S ~arrives/lands at V
when:at       S ~{happens} [daily/nightly/weekly/every_day] at V
when:at       S be ~at V
when          S ~{happens} [daily/nightly/weekly] [every/each] on/at/for/in V
when?         S ~comes/come/coming/visits V
when          S ~takes_place [every/each] on/at/for/in V
when          S ~meets/meet/happens/takes_place every V
when          S be ~on/at/every/each V
contact       S can_be ~reached at/on/under V

prefer        S ~prefer(s)/favors/favours/would_rather_have V
use           S ~use(s)/using/runs_on/relies_on/rely_on/standardized_on/standardised_on/settled_on/chose/adopted V
switched!     S ~{switches} [back/over] from F to/onto V
switched!     S ~{switches} O from F to/onto V
switched!     S ~{switches} [back/over] to/onto V
switched!     S ~{switches} O to/onto V
switched:tool!  S ~{turns} from F to/onto V
switched:tool!  S ~{turns} O from F to/onto V
switched:tool!  S ~{turns} [over/back] to/onto V
switched:tool!  S ~{turns} O to/onto V
switched!     F ~replaced/superseded/swapped [out] with/by/for V
switched!     S ~replaced/replaces/replacing/swapped/swaps/exchanged/substituted [out] F with/by/for V
switched!     S ~ditched/dropped/abandoned/retired/got_rid_of F in_favor_of/in_favour_of/for/and_use/and_switched_to V
switched!     S ~ditched/dropped/abandoned/retired/got_rid_of/gave_up_on/moved_away_from/migrated_away_from F
switched!     S ~moved/migrated from F
succeeded!    V ~replaces/replaced/succeeds/succeeded F as N
succeeded!    V ~replaces/replaced/succeeds/succeeded F
renamed!      S ~renamed/renames/renaming/rename F to/as/into V
renamed!      F ~renamed/rebranded [to/as/into] V
renamed!      O be/goes/go now ~called/named/known_as/by V
called        O ~called/named/known_as/goes_by V


on:like       S ~like(s)/love(s)/enjoy(s) V
ended:like    S ~hate(s)/dislike(s)/detest(s)/loathe(s) V
on:drink      S ~drink(s)/drinking V
on:eat        S ~eat(s)/eating V
on:play       S ~play(s)/playing V
on:have       S ~has/have V
on:smoke      S ~smoke(s)/smoking V
on:drive      S ~drive(s) V
on:speak      S ~speak(s) V
on:support    S ~support(s) V
on:attend     S ~attend(s) V
on:take       S ~take(s)/taking V

is:smoking=yes             S ~smoke(s)
is:smoking=no!             S ~quit/stopped smoking
is:diet=omnivore           S ~eat(s)/eating meat
is:diet=omnivore           S ~eat(s)/eating everything
is:employment=employed!    S ~found/got/started a_job/working/work
is:employment=unemployed!  S lost ~job/his_job/her_job/their_job/my_job
is:presence=away           S be on ~vacation/holiday/leave
is:presence=back!          S be back from ~vacation/holiday/leave
is:relationship=single     S be a ~bachelor/bachelorette
is:relationship=married!   S ~married/got_married/marries V
is:relationship=married!   S get(s)/got/getting ~married
is:relationship=engaged!   S got ~engaged
is:relationship=divorced!  S ~divorced/got_divorced
is:relationship=single!    S ~broke/split/separated/parted up/from/ways
is:relationship=dating     S be ~dating/seeing V
is:relationship=dating     S be in ~a_relationship
is:relationship=dating     S ~has/have/got a_boyfriend/a_girlfriend/a_partner
is:relationship=married    S ~has/have a_husband/a_wife

diet          S be [an/a] ~V={diets}
diet          S became/went/turned [an/a] ~V={diets}
age           S be V ?0/1/2/3/4/5/6/7/8/9
age!          S ~turned V
version       S ~upgraded/updated/downgraded O to V
version:of    S ~run(s)/running/use(s)/using/on/pinned_to O V
"""
