"""The words of a language, by what they are asked for.

Each field is a table of one subject: alternatives for a regular expression without the group around them, or a set of
words. A field that a language leaves empty adds nothing to what the engines look for.

Invariants: pure data; alternatives have no number or name of a group, unless the field says so, as those of several
languages stand in one pattern.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from indexer.language.fact_tables import Clauses, FactTable, Frames, Nouns, Restatements, Values


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Outcomes:
    """Words of failure and success."""

    exit_words: str = ""  # words before the exit code of an output
    command_exit_words: str = ""  # words before the exit code of a command, in small letters
    failure_starts: str = ""  # beginnings of lines that report a failure
    failure_lines: str = ""  # whole lines that do
    no_failures: str = ""  # words of a result without failures
    error_pages: str = ""  # beginnings of error pages and refusals
    not_failed: str = ""  # words of a sentence that denies a failure
    error_lines: str = ""  # lines that a program prints when it fails
    outcomes: str = ""  # words of the outcome of a tool
    exit_only: str = ""  # words of a line that tells an exit code alone
    fine: str = ""  # words that say that all went well
    deeds: str = ""  # words of what was done
    seconds: str = ""  # units of seconds
    failed: str = ""  # words of a sentence that speaks of a failure
    signs: tuple[str, ...] = ()  # signs of a failure at the end of an output, in small letters
    exit_signs: tuple[str, ...] = ()  # of which an output with an exit code has one
    command_exit_signs: tuple[str, ...] = ()  # of which the result of a command with an exit code has one
    results: str = ""  # words before those that say that all went well
    deed_results: str = ""  # words behind those of what was done
    acknowledgements: str = ""  # other clauses that say that all went well
    exit_leads: str = ""  # words before those of `exit_only`; may be empty


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Questions:
    """Words of questions and requests."""

    asking_when: str = ""  # words that ask for a time
    requests: str = ""  # beginnings of requests
    of_asker: str = ""  # words for whoever asks
    of_asker_within: str = ""  # the same, without borders of words
    of_assistant: str = ""  # words of a question about what an assistant said
    overview: str = ""  # words that ask for an overview
    overview_within: str = ""  # the same in a language without spaces


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Authorship:
    """Words by which the author of a part of a message is known."""

    own_quotes: str = ""  # words before a quotation that is the writer's own wording
    passed_on: str = ""  # ends of lines behind which others' words follow
    own_words: str = ""  # words by which writers quote themselves
    mail_heads: str = ""  # lines above a mail that is quoted
    announcements: str = ""  # tasks with the text that they are about behind them
    labels: str = ""  # labels of a text of others
    own_texts: str = ""  # labels of the writer's own rules
    works: str = ""  # words for work on a text that is quoted
    questions_of_text: str = ""  # questions of a text that follows
    pointing: str = ""  # words of which such a question has one
    speaks_again: str = ""  # words with which the writer speaks again
    goes_on: str = ""  # words with which a message goes on behind its markup
    auxiliary: str = ""  # orders of a host for a title or a summary
    inserted_heads: str = ""  # beginnings of what a service puts into a conversation
    reports: str = ""  # words that report what others wrote or said
    reports_within: str = ""  # the same in a language without spaces
    work_words: str = ""  # words behind `works`
    speech_reports: str = ""  # speech in quotation marks with who said it; blanks are escaped
    tag_words: str = ""  # words behind a tag that is only spoken of


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Statements:
    """Words of rules, decisions, promises and orders."""

    standing: str = ""  # words of a rule that holds for all that comes
    undecided: str = ""  # words of proposals, which decide nothing
    asked: str = ""  # words of what others ask
    deciding: str = ""  # the very words for a decision
    tags: str = ""  # tags that make a question of a statement
    requests: str = ""  # words of a request
    imperatives: str = ""  # beginnings of orders
    yes: str = ""  # words that say yes
    no: str = ""  # words that say no
    names: str = ""  # words with which people introduce themselves, and the name
    not_done: str = ""  # words of what is not done
    empty: str = ""  # whole sentences that say nothing
    empty_sentences: str = ""  # the same, with their signs
    offers: str = ""  # words of offers at the end of an answer
    conditions: str = ""  # words of a condition before the will of others
    user_words: str = ""  # words for the user
    consents: str = ""  # words that claim that the user agreed
    only_asked: str = ""  # words of what was only asked for, before such a claim
    rules: str = ""  # words of a rule
    orders: str = ""  # words of a rule at the beginning of a clause
    order_starts: str = ""  # words that such a clause may follow
    rule_hints: tuple[str, ...] = ()  # of which a text with a rule has one, in small letters
    decisions: str = ""  # words of a decision
    decision_hints: tuple[str, ...] = ()  # of which a text with a decision has one
    due: str = ""  # words of what is promised or demanded for a day
    due_hints: tuple[str, ...] = ()  # of which a text with a promise has one
    rule_words: frozenset[str] = frozenset()  # of which a sentence with a rule has one
    strong_rules: str = ""  # words that are clear rules
    weak_rules: str = ""  # words that may be rules
    decision_wordings: str = ""  # words of a sentence that decides
    decision_words: frozenset[str] = frozenset()  # of which such a sentence has one
    done: str = ""  # words of what is done
    done_first: str = ""  # those that say so at the beginning, whatever failed
    plans: str = ""  # words of what is being done, or will be
    asks: str = ""  # beginnings of requests to an assistant
    offer_words: frozenset[str] = frozenset()  # of which an offer has one
    wills: str = ""  # words of the will of others
    later_within: str = ""  # words behind a claim of consent that is only to come
    consent_words: frozenset[str] = frozenset()  # words of such claims that do not tell what was agreed to
    consent_words_within: frozenset[str] = frozenset()  # the same in pairs of characters
    question_ends: tuple[str, ...] = ()  # ends of a question


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Phrases:
    """Set phrases."""

    relative_times: str = ""  # words of time that mean another day tomorrow
    pointing: str = ""  # first words whose meaning stands before the sentence
    joints: str = ""  # words that join a sentence to the one before
    narration: str = ""  # beginnings of what an assistant is about to do
    pleasantries: str = ""  # greetings, thanks, wishes and leaves
    requests: str = ""  # beginnings of questions that ask for a deed
    pictures: str = ""  # asides that describe a picture, the description in a group
    labels: str = ""  # texts that only number something
    bare: str = ""  # words of a request that names nothing
    own: str = ""  # words of the writer
    nothing: str = ""  # lines that stand for nothing
    nothing_reported: str = ""  # replies that report nothing
    nameless: str = ""  # wishes that name nothing
    reasons: str = ""  # first words of a reason
    speaker_words: str = ""  # names of roles at the beginning of a line
    turn_words: str = ""  # words behind such a name
    steps: str = ""  # announcements of a step
    references: str = ""  # words before the number of a message
    reference_joints: frozenset[str] = frozenset()  # words between such numbers
    ranges: str = ""  # words between the first and the last of several numbers
    interjections: str = ""  # words that open a sentence and say nothing
    interjections_within: str = ""  # the same in a language without spaces


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Recall:
    """Words by which a message needs memories, or none."""

    keep: str = ""  # commands that keep what follows
    picks: str = ""  # words before the number of an option
    courtesies: str = ""  # courtesies before a question
    thanks: str = ""  # thanks behind a question
    asking: str = ""  # first words of what asks
    assistants: str = ""  # names of the assistant in a note
    recalling: str = ""  # words with which an assistant says that it remembers
    triggers: str = ""  # words for what was said before
    small_talk: str = ""  # whole clauses of small talk
    small_talk_within: str = ""  # small talk of a language without spaces
    fillers: frozenset[str] = frozenset()  # words of small talk
    asking_commands: frozenset[str] = frozenset()  # commands that ask for memories
    keeping_commands: frozenset[str] = frozenset()  # commands that keep what follows
    commands_within: str = ""  # names of commands in a language without spaces
    pick_signs: str = ""  # signs of the number of an option
    pick_units: str = ""  # words behind such a number
    pick_ends: str = ""  # particles behind those
    asking_ends: tuple[str, ...] = ()  # ends of a sentence that asks


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Salience:
    """Words of what is worth keeping."""

    introduced: str = ""  # words with which somebody is introduced
    introductions: tuple[str, ...] = ()  # of which a text with such words has one, in small letters
    unit_signs: str = ""  # signs behind a number
    particulars: Mapping[str, str] = field(default_factory=dict)  # patterns of a script of its own, by what they find
    personal: frozenset[str] = frozenset()  # words of who somebody is and where
    personal_within: str = ""  # the same in a language without spaces
    stressed: frozenset[str] = frozenset()  # words that stress what they stand before
    stressed_phrases: tuple[str, ...] = ()  # several words that do
    stressed_within: str = ""  # the same in a language without spaces
    mark_words: Mapping[str, frozenset[str]] = field(default_factory=dict)  # words, by the mark
    marks: Mapping[str, str] = field(default_factory=dict)  # the same in a language without spaces
    numbers: str = ""  # numbers in signs of a script
    names: str = ""  # what stands with a name in a language without spaces
    grammar_pairs: frozenset[str] = frozenset()  # words of grammar of two characters


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Sameness:
    """Words that two texts may differ in, or that turn what a text says."""

    asked_notes: str = ""  # words of a note with what was asked, without its group
    decided: str = ""  # words before what was decided
    oneself: str = ""  # words of those who speak
    no_subject: str = ""  # first words of a sentence that leaves its subject out
    negations: str = ""  # words that turn a statement
    frames: str = ""  # frames around what was said
    topics: frozenset[str] = frozenset()  # words before a colon that are no names
    topic_signs: str = ""  # characters before a colon that are in no name
    movable: frozenset[str] = frozenset()  # words with which a phrase begins that may stand elsewhere
    swapped: frozenset[str] = frozenset()  # words of such phrases that may change places
    fixed: frozenset[str] = frozenset()  # words with which the order of words says more
    no_names: frozenset[str] = frozenset()  # words that are no name before a report
    users: frozenset[str] = frozenset()  # names of the user before a colon
    assistants: frozenset[str] = frozenset()  # names of the assistant before a colon
    personal: frozenset[str] = frozenset()  # words of those who speak or listen
    turning: frozenset[str] = frozenset()  # words that may not be left out
    speakers: frozenset[str] = frozenset()  # words for who speaks alone
    listeners: frozenset[str] = frozenset()  # words for who listens
    empty: frozenset[str] = frozenset()  # other words that a retelling may leave out
    day_leads: str = ""  # words before the day in brackets behind a note
    named_reports: str = ""  # reports by somebody with a name, in a group name; of one language
    report_ends_within: str = ""  # words of a report behind a name
    same_words: Mapping[str, str] = field(default_factory=dict)  # words of another writing, each as compared
    shortened: Mapping[str, str] = field(default_factory=dict)  # ends that are words, each written out
    unsaid: frozenset[str] = frozenset()  # words that are not compared
    week_within: str = ""  # words for the week before the sign of a day
    particles_within: str = ""  # particles at an end that say nothing
    times_within: str = ""  # words of time that may stand elsewhere
    fixed_within: str = ""  # see `fixed`
    week_sign: str = ""  # the sign that takes the place of those, of one language
    same_signs: Mapping[str, str] = field(default_factory=dict)  # the same for signs
    assistants_named: str = ""  # names of the assistant in a frame
    clause_joints: str = ""  # words between two clauses, with their blanks


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Replies:
    """Words of short replies."""

    option_words: str = ""  # words before the label of an option
    assents: str = ""  # words that say yes, or that something is good
    thanks: str = ""  # words that may stand behind an assent
    refusals: str = ""  # beginnings of lines that refuse, or ask for something to work on
    denials: str = ""  # words that say no
    go_on: str = ""  # words that say to go on
    go_on_leads: str = ""  # words before them
    go_on_ends: str = ""  # words behind them
    ordinals: Mapping[int, str] = field(default_factory=dict)  # words for a place among options, -1 for the last
    all_options: str = ""  # words for all options
    or_words: str = ""  # words between options
    or_labels: str = ""  # the same, with the next label
    before_label: str = ""  # words before the label that is chosen
    after_label: str = ""  # words behind it
    and_words: str = ""  # words between labels that are chosen
    but_words: str = ""  # words behind a label with which more follows
    refusal_leads: str = ""  # words before a refusal


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Lasting:
    """Words of what its writer wants kept."""

    remember: str = ""  # words with which something is to be remembered
    address: str = ""  # words of how the writer wants to be answered or called
    oneself: str = ""  # words of clauses about their writer, in small letters
    called: str = ""  # words with which the writer is named


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Grammar:
    """Words of grammar."""

    stop_words: frozenset[str] = frozenset()  # words that tell nothing in a question
    grammar_words: str = ""  # of which one in three words of a text is one; none that is common in English elsewhere
    borders: str = ""  # words of grammar and of asking in a script without spaces, at which a question is cut
    abbreviations: frozenset[str] = frozenset()  # behind which a dot ends no sentence
    last_abbreviations: frozenset[str] = frozenset()  # those that may end one
    number_abbreviations: frozenset[str] = frozenset()  # those that stand before a number
    lettered: frozenset[str] = frozenset()  # words before a single letter, behind which a sentence may end
    before_ordinals: frozenset[str] = frozenset()  # words before a number with a dot that ends no sentence
    behind_ordinals: str = ""  # words behind such a number
    verbs: str = ""  # words that a short sentence has, and an item of a list has not
    verbs_within: str = ""  # the same in a language without spaces
    shared_words: frozenset[str] = frozenset()  # words of it that are grammar of other languages
    name_words: frozenset[str] = frozenset()  # stop words that a name may have
    numbered_words: frozenset[str] = frozenset()  # words before a number that make no id of it


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Days:
    """Words of days."""

    months: tuple[str, ...] = ()  # names of the months, which may stand behind the number of a day; each spelling
    lone_months: Mapping[str, int] = field(default_factory=dict)  # names of months that may stand alone
    weekdays: Mapping[str, int] = field(default_factory=dict)  # Monday is 0
    shifts: Mapping[str, int] = field(default_factory=dict)  # "last" is -1, "next" is 1
    counts: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # least and most of a number in words
    units: Mapping[str, str] = field(default_factory=dict)  # day, week, fortnight, month or year
    relative: tuple[tuple[str, str], ...] = ()  # patterns of relative days, and the reader of each in `asked_days`
    years: Mapping[str, int] = field(default_factory=dict)  # words for a year, as "last year"
    shifted_years: tuple[str, ...] = ()  # patterns of such words, or with a group `shift`
    bare_weekdays: tuple[str, ...] = ()  # patterns of a weekday or a weekend that says not which
    past: str = ""  # words of a question about the past
    day_words: Mapping[str, int] = field(default_factory=dict)  # words for a day, as "today"
    ambiguous: frozenset[str] = frozenset()  # those that are words of other languages, too
    latest: str = ""  # words that ask for what is new
    latest_within: str = ""  # the same in a language without spaces
    happening: str = ""  # words that only ask what there was
    happening_within: str = ""  # the same in a language without spaces
    numerals: str = ""  # numbers below a hundred of a script with signs of its own
    year_numerals: str = ""  # years of such a script
    week: str = ""  # words before the number of a weekday
    ordinal_ends: str = ""  # ends of the number of a day
    of_month: str = ""  # words between a day and its month
    year_signs: str = ""  # signs behind the number of a year
    month_signs: str = ""  # signs behind that of a month
    day_signs: str = ""  # signs behind that of a day
    stamp_signs: str = ""  # the same in a stamp
    leads: str = ""  # words before a day that a text begins with; blanks are escaped
    onwards: str = ""  # words behind such a day
    near: str = ""  # words for a day by today or by its place in the week
    near_within: str = ""  # the same, without borders of words
    short_weekdays: str = ""  # short names of weekdays, as they are written
    digits: str = ""  # signs of the digits from zero, of one language
    weekday_signs: str = ""  # signs behind `week`
    clock_joints: str = ""  # words between an hour and its day
    other_ends: str = ""  # other ends of the number of a day, before the name of its month
    before_month: str = ""  # other words between a day and its month
    before_year: str = ""  # words before the year of a day
    articles: str = ""  # words before the number of a day
    numeral_signs: str = ""  # signs of numbers in a script with signs of its own
    month_numerals: str = ""  # numbers of months in such a script
    year_marks: str = ""  # signs behind a year in a sentence
    month_marks: str = ""  # the same behind a month
    day_marks: str = ""  # the same behind a day
    ambiguous_months: frozenset[str] = frozenset()  # names of months that are other words, too
    time_words: frozenset[str] = frozenset()  # words that speak of a time
    time_units: frozenset[str] = frozenset()  # words that do so in company
    time_companions: frozenset[str] = frozenset()  # words of such company
    hour_words: frozenset[str] = frozenset()  # words behind an hour, and parts of them
    time_phrases: str = ""  # phrases of units of time with their company
    calendar_leads: str = ""  # words before a month or a weekday
    time_signs: str = ""  # characters of which each of the next has one
    time_words_within: str = ""  # words that speak of a time, in a language without spaces
    clock_signs: str = ""  # signs behind an hour
    half_signs: str = ""  # signs of a half behind those
    minute_signs: str = ""  # signs behind the minutes
    before_months: str = ""  # words before the name of a month that is another word, too
    day_joints: str = ""  # words between the numbers of several days
    short_leads: str = ""  # words before a month and a day in digits
    particles: str = ""  # particles behind a day
    title_words: frozenset[str] = frozenset()  # words of a day in a title, beside names of months and weekdays
    title_signs: str = ""  # signs of a day in a title


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Sections:
    """Names of the sections of a record of work."""

    names: Mapping[str, str] = field(default_factory=dict)  # alternatives, by the subject
    headings: Mapping[str, str] = field(default_factory=dict)  # words of headings, by what stands below; first wins


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Labels:
    """Words before a colon."""

    notes: frozenset[str] = frozenset()  # those that are nobody's name
    addresses: frozenset[str] = frozenset()  # others that are none in a passage
    remarks: frozenset[str] = frozenset()  # others that are none in a message
    subjects: frozenset[str] = frozenset()  # words of labels in a talk, none of which is in a name
    subjects_within: str = ""  # the same in a language without spaces
    asking: Mapping[str, str] = field(default_factory=dict)  # questions, by the kind of label; the first that fits
    answers: Mapping[str, frozenset[str]] = field(default_factory=dict)  # words of the labels, by their kind


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Units:
    """Words of units, as alternatives without any pattern."""

    times: Mapping[float, str] = field(default_factory=dict)  # by the seconds
    sizes: Mapping[float, str] = field(default_factory=dict)  # by the bytes
    counts: Mapping[float, str] = field(default_factory=dict)  # by the number
    money: Mapping[str, str] = field(default_factory=dict)  # by the code in small letters
    large_money: Mapping[str, tuple[str, float]] = field(default_factory=dict)  # code and number of a word
    others: Mapping[str, str] = field(default_factory=dict)  # by the unit that they are one with


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Numerals:
    """Words of numbers and of times of day."""

    first_twelve: tuple[str, ...] = ()  # the numbers from one to twelve, in order
    others: Mapping[str, int] = field(default_factory=dict)  # further words for one of them, or for the hour twelve
    teens: Mapping[str, int] = field(default_factory=dict)  # the numbers from thirteen to nineteen
    tens: Mapping[str, int] = field(default_factory=dict)  # the tens from twenty, before one of the first
    scales: Mapping[str, int] = field(default_factory=dict)  # words that make a number larger
    single: Mapping[str, float] = field(default_factory=dict)  # words that are a number by themselves
    noon: str = ""  # words for noon and midnight
    before_hour: Mapping[str, int] = field(default_factory=dict)  # minutes by the words before an hour
    behind_hour: Mapping[str, int] = field(default_factory=dict)  # minutes by the words behind an hour
    behind_unit: Mapping[str, int] = field(default_factory=dict)  # minutes by the words behind an hour with its unit
    hour_signs: str = ""  # words behind an hour, before its minutes
    hour_units: str = ""  # units behind an hour, beside its minutes
    clock_hints: str = ""  # parts of which a text with a time in words has one
    day_leads: str = ""  # words before the number of a day
    day_ends: str = ""  # ends of such a number
    shares: str = ""  # words between a part and the whole, with their blanks
    minute_words: Mapping[str, int] = field(default_factory=dict)  # minutes in words, before the hour
    minute_units: str = ""  # units of such minutes
    minute_ways: Mapping[str, int] = field(default_factory=dict)  # words behind them; -1 for before the hour
    half_hours: str = ""  # words before an hour of which half has gone by
    full_hours: str = ""  # words behind a full hour
    minutes_behind: str = ""  # minutes in words, behind the hour
    no_hours: str = ""  # words behind two such numbers that are no time of day
    day_hours: str = ""  # words behind four digits of a time of day
    clock_within: str = ""  # times of day, in groups before, lack, hour, part and minute
    clock_parts: Mapping[str, int] = field(default_factory=dict)  # minutes, by the words behind an hour
    articles: str = ""  # words that stand for one of a large number
    joints: str = ""  # words within a number
    halves: frozenset[str] = frozenset()  # words for a half
    digit_signs: Mapping[str, float] = field(default_factory=dict)  # signs of digits
    scale_signs: Mapping[str, int] = field(default_factory=dict)  # signs that make a number larger


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Secrets:
    """Words by which a secret is known."""

    passwords: str = ""  # words for a password
    password_hints: tuple[str, ...] = ()  # of which a text with such words has one, in small letters
    unsigned_passwords: str = ""  # words behind which one may stand without a sign
    unsigned_passwords_within: str = ""  # the same in a language without spaces
    tokens: str = ""  # words for a token or key
    token_hints: tuple[str, ...] = ()  # see `password_hints`; so are the other hints
    unsigned_tokens: str = ""  # words behind which one may stand without a sign
    codes: str = ""  # words for a code of digits
    code_hints: tuple[str, ...] = ()
    unsigned_codes: str = ""  # words behind which one may stand without a sign
    unsigned_codes_within: str = ""  # the same in a language without spaces
    bare_codes: str = ""  # words behind which one stands if a place is named behind it
    code_places: str = ""  # such places
    phrases: str = ""  # words for a passphrase
    phrase_hints: tuple[str, ...] = ()
    seeds: str = ""  # words for a seed phrase
    seed_hints: tuple[str, ...] = ()
    accounts: str = ""  # words for the number of an account or a card
    account_hints: tuple[str, ...] = ()
    identities: str = ""  # words for the number of an identity card
    identity_hints: tuple[str, ...] = ()
    purposes: str = ""  # words between such a word and what it is for
    gives: str = ""  # words between such a word and the secret
    gives_within: str = ""  # the same in a language without spaces
    fillers: str = ""  # words behind those
    plain_gives: str = ""  # words between such a word and a secret that is a word itself
    plain_gives_within: str = ""  # the same in a language without spaces
    plain_fillers: str = ""  # words behind those
    announcements: str = ""  # words with which a secret is announced
    no_values: frozenset[str] = frozenset()  # words where a secret could stand, which are none
    no_values_within: str = ""  # beginnings of such words in a language without spaces
    labels: str = ""  # words of which a value that is a label has one
    measures: str = ""  # what a number counts
    identified: str = ""  # words before an id that is no secret
    identified_within: str = ""  # the same in a language without spaces
    id_words: str = ""  # words behind those
    id_signs: str = ""  # the same in a language without spaces
    placeholders: str = ""  # words that stand for a secret
    word_ends: str = ""  # ends of words of how a password is
    measured: str = ""  # what is counted or numbered, behind a number
    no_keys: str = ""  # words before one for a key that is no secret
    no_seeds: frozenset[str] = frozenset()  # words of grammar that are in no seed phrase


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PersonNames:
    """Words of names, and words that are taken for one."""

    words: frozenset[str] = frozenset()  # names that are words, or months, as well
    anybody: frozenset[str] = frozenset()  # words for anybody who is greeted
    no_parts: frozenset[str] = frozenset()  # words of names by which nobody is called
    titles_within: str = ""  # titles behind a name
    long_surnames: tuple[str, ...] = ()  # surnames of two characters
    words_within: frozenset[str] = frozenset()  # given names that mean something else as often
    familiar: str = ""  # signs before a surname that is used as a name
    pet_signs: str = ""  # those before the last sign of a given name
    cries: str = ""  # cries before a greeting
    greetings: str = ""  # greetings and thanks before a name; blanks in brackets
    greeting_ends: str = ""  # words behind those
    hellos_within: str = ""  # greetings before or behind a name
    greeting_particles: str = ""  # particles behind a greeting or a name
    addresses_within: str = ""  # others before a name
    no_names_within: str = ""  # what stands where a name could, and is none
    no_capitals: frozenset[str] = frozenset()  # words with a capital that are no names


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Language:
    """A language.

    Attributes:
        name: Its name in English.
        is_spaced: True if words stand apart in it.
        capitalises_nouns: True if each noun has a capital in it, and not names alone.
    """

    name: str
    is_spaced: bool = True
    capitalises_nouns: bool = False
    outcomes: Outcomes = Outcomes()
    questions: Questions = Questions()
    authorship: Authorship = Authorship()
    clauses: Clauses = Clauses()
    nouns: Nouns = Nouns()
    values: Values = Values()
    statements: Statements = Statements()
    phrases: Phrases = Phrases()
    recall: Recall = Recall()
    salience: Salience = Salience()
    sameness: Sameness = Sameness()
    replies: Replies = Replies()
    lasting: Lasting = Lasting()
    grammar: Grammar = Grammar()
    days: Days = Days()
    sections: Sections = Sections()
    labels: Labels = Labels()
    units: Units = Units()
    numerals: Numerals = Numerals()
    secrets: Secrets = Secrets()
    names: PersonNames = PersonNames()
    frames: Frames = Frames()
    restatements: Restatements = Restatements()
    facts: FactTable | None = None  # None for a language of which no facts are read
