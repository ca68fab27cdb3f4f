"""Rejects texts that are not worth storing; flags injected instructions. Pure.

Rejects texts without words, small talk and bare refusals; in doubt a text is stored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from agentcore.memory.language.text import INVISIBLE, normal_form, sentences, tokens, words

EMPTY = "empty: it holds no words"
GREETING = "greeting: it holds nothing but greetings, thanks or farewells"
REFUSAL = "refusal: it says nothing but that the agent cannot help"

_JUDGED_CHARS = 600

_PHRASES = """
hi | hii | hello | hey | heya | hiya | yo | howdy | greetings | hi there | hello there | hey there |
welcome | welcome back | good morning | good afternoon | good evening | good night | good day | morning |
evening | sup | what's up | gm | gn | how are you | how are you doing | how's it going |
how are you today | how are you doing today | how is it going | how do you do | how have you been |
I'm fine | fine thanks | I'm good | I'm well | doing well | doing great | and you | nice to meet you |
nice to see you | good to see you | pleased to meet you | long time no see | are you there | thanks |
thank you | thx | ty | tysm | cheers | thanks a lot | thanks a million | many thanks | much appreciated |
thank you so much | thank you very much | thanks so much | thanks again | thank you again |
appreciate it | I appreciate it | I appreciate that | I appreciate your help | thanks for your help |
thank you for your help | thanks for the help | thanks for that | for your help | for the help |
for everything | that's all | that will be all | you are welcome | you welcome | no problem |
no worries | anytime | my pleasure | don't mention it | glad to help | happy to help | glad I could help |
glad to hear that | glad to hear it | great to hear | sounds good | bye | goodbye | bye bye | see you |
see ya | see you later | see you soon | see you tomorrow | talk soon | talk to you soon |
talk to you later | later | take care | cya | ttyl | have a nice day | have a good day |
have a great day | have a good one | have a nice evening | have a great weekend | sleep well |
until next time | ok | okay | k | kk | cool | great | nice | perfect | awesome | wonderful | excellent |
alright | got it | understood | lol | haha | hahaha | wow | oh | ah | hm | hmm | aha | um | yay | sorry |
I am sorry | I'm sorry |
I'm so sorry | my apologies | I apologize | I apologise |
I apologize for the inconvenience | I apologize for the confusion | how can I help | how can I help you |
how can I help you today | how may I help you | how may I help you today | how can I assist you |
how can I assist you today | how may I assist you today | what can I do for you |
what can I do for you today | let me know if you need anything | let me know if you need anything else |
let me know if you have any questions | let me know if you have any other questions | feel free to ask |
is there anything else I can help with | is there anything else I can help you with | anything else |
hallo | guten morgen | guten tag | guten abend | gute nacht | servus | moin | grüß gott | tschüss |
auf wiedersehen | danke | danke schön | danke sehr | vielen dank | bitte | bitte schön | wie geht es dir |
wie geht's | bonjour | bonsoir | salut | coucou | bonne nuit | bonne journée | merci | merci beaucoup |
au revoir | à bientôt | de rien | ça va | comment ça va | hola | buenos días | buenas | buenas tardes |
buenas noches | gracias | muchas gracias | de nada | adiós | hasta luego | hasta mañana | qué tal |
cómo estás | ciao | buongiorno | buonasera | buonanotte | salve | grazie | grazie mille | prego |
arrivederci | come stai | olá | oi | bom dia | boa tarde | boa noite | obrigado | obrigada |
muito obrigado | muito obrigada | tchau | até logo | hoi | goedemorgen | goedemiddag | goedenavond |
dank je | dank je wel | bedankt | tot ziens | hej | hej hej | god morgon | god kväll | tack |
tack så mycket | hei | takk | tusen takk | mange takk | tak | moi | kiitos | hyvää huomenta | cześć |
dzień dobry | dziękuję | do widzenia | ahoj | dobrý den | děkuji | szia | köszönöm | merhaba | günaydın |
teşekkürler | teşekkür ederim | привет | здравствуйте | доброе утро | добрый день | добрый вечер |
спасибо | большое спасибо | пока | до свидания | привіт | дякую | γεια | γεια σου | καλημέρα | ευχαριστώ |
שלום | תודה | مرحبا | السلام عليكم | شكرا | नमस्ते | धन्यवाद | 你好 | 您好 | 早上好 | 晚上好 | 晚安 |
谢谢 | 謝謝 | 再见 | こんにちは | おはよう | おはようございます | こんばんは | ありがとう |
ありがとうございます | さようなら | おやすみなさい | 안녕 | 안녕하세요 | 감사합니다 | 고마워요 | สวัสดี |
ขอบคุณ | xin chào | cảm ơn | namaste | salam | shalom | terima kasih
"""  # noqa: RUF001 - greetings in their own alphabets
_FILLING = """
again agent all and assistant bot dear everybody everyone folks for friend friends guys much now so team then
there today too very well
"""
_FILLERS = frozenset(_FILLING.split())
_SMALL_TALK = frozenset(tuple(words(phrase)) for phrase in _PHRASES.split("|"))
_LONGEST_PHRASE = max(len(phrase) for phrase in _SMALL_TALK)

_LABEL = re.compile(r"(user|human|agent|assistant|ai|bot): ?(.*)", re.IGNORECASE)
_ASKING = frozenset({"user", "human"})

_SORRY = (
    r"(?:(?:(?:i'm|i am) (?:\w+ )?sorry|sorry|unfortunately|i apologi[sz]e|(?:my )?apologies)[,.:;]? ?)?"
    r"(?:but )?"
)
_AI = r"as an? (?:ai|artificial intelligence|(?:large )?language model)[\w -]{0,40},? "
_CANNOT = (
    r"i(?: can't| cannot| can not| won't| couldn't| could not|(?: am|'m) (?:unable|not able|not allowed) to)"
    r"(?: be able to)? "
)
_OBJECT = (
    r"(?: (?:you|that|this|it|those|these|such|the|your|any|kind|type|of|sort|requests?|questions?|"
    r"topics?|information|content|conversation|here|at|moment|time|right|now|further))*"
)
_REFUSALS = tuple(
    re.compile(pattern)
    for pattern in (
        f"{_SORRY}(?:{_AI})?{_CANNOT}(?:help|assist|comply|answer|provide|discuss|fulfill?|generate|process|"
        f"do|engage|continue|respond|proceed)(?: you)?(?: with| to| in| on)?{_OBJECT}",
        _SORRY + _AI + r"i (?:can't|cannot|can not|am unable|am not able|don't|do not)\b\D*",
        _SORRY + r"i (?:don't|do not) know(?: (?:the|answer|to|that|this|it|question|about))*",
        _SORRY + r"i(?: am|'m) not sure(?: (?:about|of|that|this|it))*",
        _SORRY + r"i (?:don't have|do not have|have no|have not got)(?: (?:any|enough|the|that|access|"
        r"information|data|knowledge|idea|details|to|about|on|of|this|it|answer|question|your))*",
        _SORRY + r"(?:this|that|it) (?:goes against|violates|is against) (?:my|our|the) [\w ]{0,40}",
        r"(?:(?:es )?tut mir leid,? )?(?:aber )?(?:dabei|damit|das) kann ich (?:dir |ihnen )?(?:leider )?"
        r"nicht (?:helfen|tun)",
        r"(?:désolée?,? )?(?:mais )?je ne peux pas (?:vous |t')?(?:y )?(?:aider|répondre)[\w à']{0,20}",
        r"(?:lo siento,? )?(?:pero )?no puedo (?:ayudarte|ayudarle|hacer eso)(?: con (?:eso|esto))?",
    )
)
_HEDGE = re.compile(r"\b(?:but|however|although|though|instead|because)\b")
_FIRST_PERSON = frozenset({"i", "my", "mine", "we", "our", "ours", "us"})
_REQUESTING = """
can could would will please tell give write show explain help generate make create find search list describe
translate summarize summarise what who whom whose which when where why how is are do does did compute
calculate
"""
_REQUESTS = frozenset(_REQUESTING.split())


def rejection(content: str) -> str | None:
    """Returns the reason to reject the content, as a short sentence; None to store it.

    A question without personal information is rejected together with its refusal.
    """
    text = content.strip()
    if not re.search(r"[^\W_]", text):
        return EMPTY
    if len(text) > _JUDGED_CHARS:
        return None
    turns = list(_turns(text))
    if all(is_small_talk(said) for _, said in turns):
        return GREETING
    return REFUSAL if _is_only_refusal(turns) else None


def _turns(text: str) -> list[tuple[bool, str]]:
    found: list[tuple[bool, str]] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        label = _LABEL.fullmatch(line)
        if label:
            found.append((label[1].casefold() in _ASKING, label[2]))
        else:
            found.append((bool(found) and found[-1][0], line))
    return found


def is_small_talk(text: str) -> bool:
    said = words(text)
    at = 0
    while at < len(said):
        step = next(
            (size for size in range(_LONGEST_PHRASE, 0, -1) if tuple(said[at : at + size]) in _SMALL_TALK),
            1 if said[at] in _FILLERS else 0,
        )
        if not step:
            return False
        at += step
    return True


def _is_only_refusal(turns: list[tuple[bool, str]]) -> bool:
    refused = False
    for asking, said in turns:
        for sentence in sentences(said):
            if is_small_talk(sentence):
                continue
            if _is_refusal(sentence):
                refused = True
            elif not (asking and _is_bare_request(sentence)):
                return False
    return refused


def _is_refusal(sentence: str) -> bool:
    plain = normal_form(sentence).replace("\u2019", "'").rstrip(".!\u2026 ")
    if _HEDGE.search(re.sub(f"^{_SORRY}", "", plain)):
        return False
    return any(pattern.fullmatch(plain) for pattern in _REFUSALS)


def _is_bare_request(sentence: str) -> bool:
    said = tokens(sentence)
    if not said or any(char.isdigit() for char in sentence):
        return False
    if any(word[0].isupper() for word in said[1:]) or not _FIRST_PERSON.isdisjoint(words(sentence)):
        return False
    return said[0].casefold() in _REQUESTS


_DEFAULT = Path(__file__).with_name("screening.json")


class Screen:
    """Names the patterns of injected instructions that a text matches.

    `changes`: patterns by name that add to `screening.json` or replace one; an empty one removes it. Raises ValueError
    for an invalid pattern.
    """

    def __init__(self, changes: Mapping[str, str] | None = None) -> None:
        self._patterns = dict(_default_patterns())
        for name, pattern in (changes or {}).items():
            try:
                self._patterns[name] = re.compile(pattern)
            except re.error as cause:
                raise ValueError(f"{name} is no regular expression: {cause}") from cause
            if not pattern:
                del self._patterns[name]

    def __call__(self, normalized: str) -> list[str]:
        seen = INVISIBLE.sub("", normalized)
        return [name for name, pattern in self._patterns.items() if pattern.search(seen)]


@cache
def _default_patterns() -> Mapping[str, re.Pattern[str]]:
    given: Mapping[str, list[str]] = json.loads(_DEFAULT.read_text(encoding="utf-8"))
    return {name: re.compile("|".join(alternatives)) for name, alternatives in given.items()}
