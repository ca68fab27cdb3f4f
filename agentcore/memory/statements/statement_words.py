"""Word lists of the statement and fact parsers: state verbs, change markers, attributes.

English only: text in other languages returns no statement. Words for facts are in the form that
`values.canonical` returns.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _forms(lines: str) -> dict[str, str]:
    return {form: line.split()[0] for line in lines.strip().splitlines() for form in line.split()}


VERBS = _forms("""
be is are am isn't aren't
have has hasn't haven't
live lives living
reside resides
stay stays staying
work works working
drive drives driving
study studies studying
commute commutes
prefer prefers
listen listens listening
run runs
ship ships
arrive arrives
depart departs
leave leaves
land lands
start starts
begin begins
end ends
finish finishes
expire expires
open opens
close closes
last lasts
take takes
cost costs
allow allows
consist consists
hold holds
seat seats
use uses using
go goes
get gets
come comes
depend depends
smoke smokes
drink drinks
eat eats
pay pays
earn earns
weigh weighs
sleep sleeps
fly flies
report reports
belong belongs
point points
support supports
own owns
lead leads leading
manage manages
maintain maintains
head heads
chair chairs
contain contains
speak speaks
like likes
love loves
play plays
need needs
know knows
read reads
teach teaches
train trains
meet meets
store stores
keep keeps
sit sits
send sends
answer answers
ask asks
pick
book
call calls
reply replies
host hosts
require requires
decide decided
""")
# A verb after a modal is parsed like the verb alone.
MODALS = frozenset({"will", "must", "should", "do", "does"})
# Single-valued: another name after one of these supersedes the first.
SINGLE_NAME = _words("""
live reside study employed based deployed hosted located called named drive commute
""")
# Multi-valued, even if one value is new.
MANY_VALUED = _words("""
speak like love play need know read support contain own take have eat drink teach allergic interested
member certified meet require book call pick keep learning responsible good able fond
""")
# Verbs whose value "I switched from X to Y" may change.
MOVED = ("live", "use", "work", "drive", "be", "prefer", "study", "take", "fly", "commute")
ROLE_VERBS = frozenset({"own", "lead", "manage", "maintain", "head", "chair"})
ROLES = ("on call for", "responsible for", "in charge of")
REQUESTS = _words("""
send answer ask pick call use reply ship book meet keep
""")

_CHANGE = (
    "changed|moved|switched|raised|lowered|increased|decreased|reduced|cut|extended|shortened|renamed|"
    "rescheduled|"
    "postponed|pushed|bumped|upgraded|downgraded|updated|migrated|transferred|set"
)
TRANSITIVE_CHANGES = f"(?:{_CHANGE})"
CHANGES = f"(?:{_CHANGE}|pushed back|brought forward|relocated|slipped|shifted)"

# Nouns whose subject has one value at a time.
ATTRIBUTES = _words("""
address budget deadline port host hostname owner manager status version date time location venue phone
number email mail e-mail name surname nickname title priority theme color colour size weight height age
salary rent price fee cost rate limit quota threshold ttl timeout level region zone branch licence license
repository repo url link codename password hint doctor dentist landlord boss mentor supervisor reviewer
approver assignee lead leader head ceo cto cfo chair chairman president director captain spokesperson bank
employer provider airline carrier editor browser shell currency timezone job role position department team
seat spot room gate platform terminal schedule frequency order goal target plan tariff medication dose
dosage hotel school university birthday anniversary wife husband partner girlfriend boyfriend fiance
fiancee car bike laptop policy image model default endpoint bucket cluster headquarters hq capital
principal departure arrival duration length capacity subject topic dataset framework database backend
""")
# Attributes whose value may be an ordinary word as well as a name: "the theme is dark".
WORDED = _words("""
theme color colour size frequency goal role position job title priority status diet plan medication order
level schedule backend framework database topic subject provider browser shell editor carrier region zone
image
""")
# A person may have several of these; a sentence about one does not identify which.
RELATED = _words("""
friend colleague coworker son daughter child kid brother sister cousin aunt uncle nephew niece cat dog pet
horse student client customer neighbour neighbor teacher coach team-mate teammate flatmate roommate
supplier partner server project ticket task plant tenant patient employee report grandmother grandfather
grandson granddaughter
""")
# Identify one thing without a name.
KNOWN_BY_ROLE = _words("user team company organisation organization office")
# A number after these is a value; after any other word it is a label ("note 1").
NUMBERED = _words("""
port gate room version level number floor terminal channel platform seat phase stage tier table track
""")
CHOSEN = _words("""
favourite favorite preferred usual current default main primary regular
""")
# Measured repeatedly: another value is a new reading, unless the words state a change.
MEASURED = _words("""
temperature load latency usage pressure balance length count reading speed humidity pulse mood score
mileage traffic backlog price rate weather throughput uptime pollution level glucose distance
""")
SETTLED = _words("""
limit threshold maximum max minimum min target goal interest policy asking default loan allowed
priority agreed log german english
""")

# With these verbs a marker such as "now" means that one name supersedes another.
CHANGEABLE = _words("""
work go prefer use ship run take get decide report store sit open close fly commute live reside study
drive stay train land arrive depart leave start begin end ask send answer pick call lead own manage
""")
COUNTRIES = _words("""
argentina australia austria belgium brazil britain bulgaria california canada chile china colombia croatia
cuba denmark egypt england estonia ethiopia europe asia africa finland florida france georgia germany
ghana greece hungary iceland india indonesia iran iraq ireland israel italy japan kenya korea latvia
lebanon lithuania luxembourg malaysia mexico morocco nepal netherland nigeria norway ontario pakistan peru
philippine poland portugal quebec romania russia scotland serbia singapore slovakia slovenia spain sweden
switzerland taiwan tanzania texa thailand tunisia turkey uganda uk ukraine usa us vietnam wale bavaria
catalonia
""")
# Happen on one day only; other verbs recur on several days.
DAY_VERBS = _words("be ship arrive start end expire depart leave land finish begin")
# May recur at several hours.
TIMETABLED = _words("leave depart arrive land open close start begin end finish run go come get")
# Recurring events: the bare noun does not identify one.
EVENTS = _words("""
meeting appointment call lunch dinner breakfast party train flight bus class lesson game match interview
session delivery order package parcel exam test shift talk lecture concert show film movie trip visit
event conference workshop webinar release launch review standup sync build ticket task invoice
""")

STATES = tuple(
    frozenset(line.split(","))
    for line in """
single,engaged,married,divorced,widowed,separated
unpaid,paid,overdue,refunded
blocked,unblocked
on,off,enabled,disabled,active,inactive,paused
failing,passing,broken,green,red,fixed,flaky
open,in progress,in review,done,closed,finished,completed,resolved,merged,cancelled,to do,on hold,blocked
in alpha,in beta,generally available,in production,live,deprecated,in development,retired,in maintenance
full,empty,half full,half empty
online,offline,up,down
available,unavailable,sold out,out of stock,in stock
approved,rejected,pending,declined,accepted,under review
vegetarian,vegan,pescatarian,omnivore
locked,unlocked
unemployed,employed,retired
public,private,internal
""".strip().splitlines()
)

DOUBT = (
    r"\bif\b|\bwhether\b|\bsuppose|\bsupposing\b|\bassum(?:e|ing)\b|\bimagine\b|\bwould\b|\bcould\b|"
    r"\bmight\b|"
    r"\bmaybe\b|\bperhaps\b|\bprobably\b|\bpossibly\b|\bunless\b|\bfor (?:example|instance)\b|"
    r"\be\.g\.|\bwhat if\b|"
    r"\bhop(?:e|es|ing)\b|\bwish(?:es)?\b|\bwants?\b|\bplan(?:s|ning)? (?:to|on)\b|\bthe plan is\b|"
    r"\bgoing to\b|"
    r"'d (?:like|love|rather|prefer)\b|\bthinks?\b|\bbelieves?\b|\bguess(?:es)?\b|\bconsider(?:s|"
    r"ing)?\b|\bunsure\b|"
    r"\bnot sure\b|\bseems?\b|\bapparently\b|\bsupposedly\b|\brumou?r|\bdream|\bpropos(?:e|es|ed|al)\b|"
    r"\bsuggest|\bestimat|\bsomeday\b|\bone day\b|\bonce\b|\bcan\b|\bpretend|\bin theory\b|\bideally\b|"
    r"\babout to\b|\btemporar|\bfor now\b|\buntil\b|\bexcept\b|\bsometimes\b|\busually\b|\boften\b|"
    r"\bjust this\b|"
    r"\bonly (?:this|on|for|today)\b|\bthis (?:week|month|year|time|quarter)\b|\bfor (?:today|"
    r"tomorrow|this)\b"
)
QUOTED = (
    r"\bsaid\b|\bsays\b|\btold\b|\bclaim(?:s|ed)?\b|\baccording to\b|\bheard\b|\bwrote\b|\bannounced\b|"
    r"\bmentioned\b|\basked\b|\bquote|\bthought\b|\bargues?\b|\binsists?\b|\bdocs? say\b|\breported\b"
)
PAST = (
    r"\bused to\b|\bbefore that\b|\bback (?:then|in)\b|\bpreviously\b|\bformerly\b|\bat the time\b|"
    r"\blast (?:week|month|year|night|time|quarter|spring|summer|autumn|fall|winter)\b|\bago\b|"
    r"\byesterday\b|"
    r"\bnext\b|\bupcoming\b|\bcoming\b|\bex-|\bprevious\b|\bformer\b|(?<![-\w])old\b(?!-)|"
    r"\boriginal(?:ly)?\b|\bthen\b|\bwas\b|\bwere\b|\bhad\b|\bdid\b|"
    r"^in (?:\d{4}|january|february|march|april|may|june|july|august|september|october|november|"
    r"december)\b|"
    r"\bas a child\b|\bwhen i was\b|\btoday\b|\bthis (?:morning|afternoon|evening)\b|\btonight\b|"
    r"\btomorrow\b"
)
ADDED = (
    r"\balso\b|\btoo\b|\bas well\b|\banother\b|\bin addition\b|\badditionally\b|\bbesides\b|"
    r"\bboth\b|\bplus\b|"
    r"\bsecond\b|\bextra\b|\bother\b|\bone of\b"
)
MARKS = (
    r"\bfrom now on\b|\bfrom today(?: on)?\b|\bas of (?:now|today)\b|\bstarting (?:now|today)\b|"
    r"\beffective immediately\b|"
    r"\bthese days\b|\bnowadays\b|\bright now\b|\bat the moment\b|\bcurrently\b|\bmeanwhile\b|"
    r"(?<!for )(?<!until )\bnow\b|\bsince (?:today|yesterday|last \w+|the \w+(?: \w+)?|this \w+|"
    r"monday|tuesday|wednesday|thursday|"
    r"friday|saturday|sunday)\b|\binstead\b(?! of)|\bagain\b"
)
# Dimension, and size in the dimension's base unit.
UNITS = {
    "second": ("time", 1.0),
    "minute": ("time", 60.0),
    "hour": ("time", 3_600.0),
    "day": ("time", 86_400.0),
    "week": ("time", 604_800.0),
    "kb": ("bytes", 1.0),
    "mb": ("bytes", 1e3),
    "gb": ("bytes", 1e6),
    "tb": ("bytes", 1e9),
    "gram": ("mass", 1.0),
    "g": ("mass", 1.0),
    "kg": ("mass", 1e3),
    "metre": ("length", 1.0),
    "meter": ("length", 1.0),
    "m": ("length", 1.0),
    "km": ("length", 1e3),
}
DETERMINERS = _words("the a an this that these those some")
INDEFINITE = _words("a an some most many few each every any part half another one several all no")
FILLERS = _words("please just really so then already still currently always actually simply ever")
POSSESSORS = {"my": "i", "mine": "i", "our": "we", "your": "you"}
UNKNOWN_SUBJECTS = _words("""
he she it they this that these those his her its their there's here who which what
""")
CONNECTORS = _words("to at on in of from and for by with")
RELATING = CONNECTORS | _words("as like near under over")
CONDITIONS = _words("on in for with by from during when while")
# Verbs that are never nouns: a span that contains one is more than a value.
FINITE = _words("is are am be have has do does will isn't aren't")


CURRENCIES = _words("euro dollar pound yen franc chf")
# For each kind of value, its possible attributes and the cue words of each.
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
""")
    },
    "weekday": {"day": _words("day held hold meet happen fall")},
    "version": {"version": _words("version release run reached upgrade")},
    "phone": {"phone": _words("phone number reach call called ring text mobile cell telephone contact line dial")},
    "port": {
        "port": _words("""
port listen reach call answer bound bind serve respond exposed client point connect run available traffic
""")
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
    "title": {"title": _words("title job role position promoted became become made appointed named serve work moved")},
}
# Too weak to determine the attribute alone: another cue must support it.
WEAK = _words("""
run take over call hand text line board given work moved place until held hold made named post date
call left
""")
# Verbs of someone who starts something: the new value precedes the verb, the thing follows it.
VALUE_FIRST = _words(
    "hired hire recruited own lead run manage took taken take head maintain steer replaced succeeded where"
)
# Between two names, these mean that the first is the value: "we meet in Elm for the review".
JOINING = _words("for in on at instead of")
VALUE_LAST = _words("with by belong hand handed moved home")
ROLE_NOUNS = _words("""
lead leader head manager engineer analyst designer director architect developer officer president partner
editor teacher nurse scientist consultant assistant secretary supervisor administrator specialist
coordinator producer researcher accountant principal owner vp ceo cto cfo coo intern chef captain
""")
FACT_CHANGES = _words("""
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
# An attribute noun that is no cue names the attribute: "the database is Postgres", "the fee is 9 euros".
OWN_CUES = {
    "name": ATTRIBUTES - frozenset().union(*CUES["name"].values()),
    "money": _words("fee rate tariff"),
    "date": _words("birthday anniversary arrival departure"),
}
# A sentence without one of these after its first word is no statement: "my Friday, please", "book a room".
# Base forms that may be nouns are excluded.
FACT_FINITE = (
    frozenset(form for form, base in VERBS.items() if form != base or base in {"be", "have"})
    - _words("asks needs likes loves")
    | (FACT_CHANGES - _words("new change move cut set off get done switch switche raise extend replace"))
    | MODALS
    | _words("happens falls can was were got cut slips switches moves serves belongs goes reaches")
)
PRONOUNS = _words("i we you they")
# Imperatives that state where someone or something can be reached.
REACHING = _words("let call reach ring text phone dial use point contact")
# "Ruth is the manager of Elena": the value precedes the verb.
NAMING = OWN_CUES["name"] | _words("owner charge leader manager responsible employer home")
