"""How common a word is in what people tell an assistant, whoever they are and whatever it is about. English; pure.

An agent with thirty memories knows too little of its own to tell "take" from "metformin". The shares come from the
turns of our own labelled talks that hold a word, and are filled up and evened out by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from agentcore.memory.lexical import term_key, terms

# By the share of memories that hold a word in any inflection, rounded to four steps; any other word is in none.
_BY_SHARE = {
    0.05: """
    ask asked come day get go good got keep like make need one put said say since take thing time two use
    want week work year
    """,
    0.03: """
    another back bring call each end every feel first five four give half hand home hour know last leave
    left let look love many mean minute month morning move much new next night old open people place
    right see send show something start still stop talk tell ten three today told tomorrow try twice way
    well without word write yes yesterday
    """,
    0.015: """
    add afternoon again almost already always answer anything april area around arrive august away bad
    become bed began believe best better big bit book box break broke brought build buy came car carry
    change check child children choose cold december decide different dinner done door early easy eat
    eight eleven enough even evening ever everybody everyone everything fall family far fast february
    felt few fifteen fifty find fine finish fit floor food forget form forty found free friday friend
    front goes gone guess happen happy hard head hear heard held help hold house hundred idea inside
    instead january job july june key kind knew known large later learn less letter life light line list
    listen little live long lose lost lot lunch made main man march matter may maybe meal meet meeting
    met mine mix monday money mostly mother name near nearly never nice nine nobody noon note nothing
    november number october off office often ok only order other outside own page paper part pay person
    phone photo plan play point prefer problem question quick quiet rather read ready real really reason
    remember rest room run same sat saturday saw school second sent september set seven short sign sit
    six sixty sleep small somebody someone soon sort sound special spend spoke stand stay step stood
    street sunday sure talked test thank themselves think thirty though thought thousand thursday till
    together tonight top town train tuesday turn turned twelve twenty understand until us usual wait walk
    water wednesday weekend whether whole woman wonder world worse worth yet young
    """,
    0.007: """
    able accept account act actually address afford age ago agree air alone along also amount anyone
    appear apply attend autumn available avoid baby bag base bath became behind belong below beside bet
    bike bill birthday black blue board body boss bottom bought boy breakfast bright brother brown bus
    business busy card care case catch cause certain chair chance cheap city class clean clear clock
    close clothes club coffee colleague color colour common company complete computer consider contact
    continue cook cool copy corner cost could country couple course cover create customer cut dad date
    daughter dead deal dear depend desk detail discuss doctor dog doubt dress drink drive drop dry dull
    email empty enjoy enter entire event exact example expect expensive experience explain extra eye face
    fact father favorite favourite feet fight file fill fix follow foot forward full gave girl given glad
    glass grandfather grandmother great green ground group grow grown hair handle hang hate health heavy
    high hit hobby holiday hope hospital hot huge hungry hurry husband important include interest issue
    join journey kept kid kitchen late laugh law lead level lie lift likely limit local low lucky manage
    manager mark medium member mention message middle million mind miss mistake model modern mom moment
    mouth mum music neighbor neighbour nervous news newspaper normal notice offer original pack paid pain
    pair parent parents park particular party pass past per perfect period pick picture piece plate
    please plenty popular position possible practice practise prepare present press pretty price private
    probably process produce product project proper protect proud prove provide public pull purpose push
    quarter quite radio raise range rate reach receive recent recommend record red reduce refuse regular
    relax remain remind rent repeat reply report request require return ride ring road rule safe sale
    save search seat seem sell sense separate serious serve service several shape share shop shout shut
    side similar simple single sister size skill slow smart smell smile son sorry space speak spring
    stair state station store story straight strange strong student study stuff style subject suddenly
    suggest suit summer supper support suppose surprise system table tea teach teacher team tend terrible
    texts thanks thick thin third ticket tired took total touch toward travel trip trouble true trust
    truth type uncle unless update upset useful version view visit voice warm wash watch wear weather
    went wife window winter wish wore worker worry wrong wrote yellow zero
    """,
}


@lru_cache(maxsize=1)
def _shares() -> Mapping[str, float]:
    """The share of each word's term, the largest where forms of it are listed apart."""
    shares: dict[str, float] = {}
    for share, listed in _BY_SHARE.items():
        for term in terms(listed):
            shares[term] = max(share, shares.get(term, 0.0))
    return shares


@lru_cache(maxsize=256)
def everyday_shares(agent_id: str) -> Mapping[int, float]:
    """By the agent's key of each everyday term, the share of memories that would hold it."""
    return {term_key(agent_id, term): share for term, share in _shares().items()}
