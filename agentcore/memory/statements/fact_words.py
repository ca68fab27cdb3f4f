"""The words by which a freely worded fact is told: of what it speaks, and that something changed.

Words stand as `values.canonical` gives them.
"""

from __future__ import annotations

from agentcore.memory.statements.statement_words import ATTRIBUTES, MODALS, VERBS


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CURRENCIES = _words("euro dollar pound yen franc chf")
# What each kind of value may be of, by the words that say so.
CUES = {
    "money": {
        "budget": _words("""
budget funding fund fund finance financed spend spending signed approved granted grant allocated allowance
board money given receive earmarked budgeted management released
"""),
        "price": _words("price cost pay priced sell fee sold cheaper dearer"),
        "salary": _words("salary earn wage"),
        "rent": _words("rent"),
    },
    "date": {
        "deadline": _words("""
deadline due finish finished done ready deliver delivered complete completed submit submitted date target
until ship send
"""),
    },
    "weekday": {"day": _words("day held hold meet happen fall")},
    "version": {"version": _words("version release run reached upgrade")},
    "phone": {
        "phone": _words("phone number reach call called ring text mobile cell telephone contact line dial")
    },
    "port": {
        "port": _words("""
port listen reach call answer bound bind serve respond exposed client point connect run available traffic
"""),
    },
    "name": {
        "home": _words("""
live living reside settled settle home house flat apartment based dwell relocated relocate moved move call
"""),
        "employer": _words("""
work working joined join hired hire employed employer signed sign recruited job started position post
company left quit
"""),
        "charge": _words("""
own owner lead leader head run charge manage manager took taken take over belong hand handed succeeded
responsible inherited steer maintain
"""),
        "car": _words("drive car sold vehicle traded swapped rid"),
        "place": _words("take room venue location held hold meet happen moved move relocated relocate place"),
    },
    "title": {
        "title": _words(
            "title job role position promoted became become made appointed named serve work moved"
        ),
    },
}
# What alone does not say of what: it must speak of the same in another way, too.
WEAK = _words("""
run take over call hand text line board given work moved place until held hold made named post date
call left
""")
# What one does who starts something: the person stands before it, what was there before stands behind.
VALUE_FIRST = _words(
    "hired hire recruited own lead run manage took taken take head maintain steer replaced succeeded where"
)
# Between two names these say no more than that the first is the value: "we meet in Elm for the review".
JOINING = _words("for in on at instead of")
VALUE_LAST = _words("with by belong hand handed moved home")
ROLE_NOUNS = _words("""
lead leader head manager engineer analyst designer director architect developer officer president partner
editor teacher nurse scientist consultant assistant secretary supervisor administrator specialist
coordinator producer researcher accountant principal owner vp ceo cto cfo coo intern chef captain
""")
CHANGES = _words("""
changed change moved move switched switch raised lowered increased decreased reduced cut extended
shortened rescheduled postponed pushed bumped upgraded upgrade downgraded updated migrated migrate
transferred set slip slipped shifted shift relocated relocate brought went go delayed deferred advanced
rolled reached topped joined hired signed settled promoted became become made appointed replaced replace
traded swapped exchanged sold dropped ditched took taken handed left quit gave got belong approved granted
succeeded started done get new renamed bound rid favour switche bought found cheaper dearer
""")
IGNORED = _words("""
a an the this that to at on in of from and for by with through via under over into as is are am be being
been was were has have had do does will must we us they you let please just really so already still
currently actually simply it its now today day from again good longer anymore instead rather than no more
old new current week starting these since where use using can your client dead but off up down forward back
out person i'll 's s
""") - _words("day")
# A noun of its own is of what it names: "the database is Postgres", "the fee is 9 euros".
OWN_CUES = {
    "name": ATTRIBUTES - frozenset().union(*CUES["name"].values()),
    "money": _words("fee rate tariff"),
    "date": _words("birthday anniversary arrival departure"),
}
# A sentence without one of these behind its first word states nothing: "my Friday, please", "book a room".
# A verb's first form may be a noun, too.
FINITE = (
    frozenset(form for form, base in VERBS.items() if form != base or base in {"be", "have"})
    - _words("asks needs likes loves")
    | (CHANGES - _words("new change move cut set off get done switch switche raise extend replace"))
    | MODALS
    | _words("happens falls can was were got cut slips switches moves serves belongs goes reaches")
)
PRONOUNS = _words("i we you they")
# What is asked for so says where someone or something is reached.
REACHING = _words("let call reach ring text phone dial use point contact")
# "Ruth is the manager of Elena": the name before is the value.
NAMING = OWN_CUES["name"] | _words("owner charge leader manager responsible employer home")
