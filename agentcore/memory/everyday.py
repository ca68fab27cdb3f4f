"""How common a word is in what people tell an assistant. English; pure.

An agent with thirty memories has too few words of its own for that; the shares come from our labelled talks.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from agentcore.memory.lexical import terms

# By the share of memories that hold a word in any inflection, in four steps; any other word is in none.
_BY_SHARE = {
    0.05: """
    ask asked come day get go gone good got keep like make need put said say take thing time two us use
    want went work year
    """,
    0.03: """
    another back bring call came each end every feel first five found four gave give half hand help home
    hour know last leave left let live look love made many mean minute month morning move much never new
    next night old open people place right see send show something start stay still stop talk tell ten
    think three today told tomorrow took try turn twice way week well without word write yes yesterday
    """,
    0.015: """
    add afternoon again almost already always answer anyone anything april area around arrive august away
    bad became become began believe best better big bit book bought box break broke brought build buy car
    care carry change check child children choose close cold december decide different dinner done door
    early easy eat eight eleven enough even evening ever everybody everyone everything fall family far
    fast february felt few fifteen fifty find fine finish fit fix food forget form forty free friday
    friend front full goes guess happen happy hard head hear heard held hold hot house hundred idea
    inside instead january job july june kept key kind knew known large late later learn less life light
    line list listen little long lose lost lot lunch main man march matter may maybe meal meet meeting
    met mind mine mix monday money mostly mother name near nearly nice nine nobody noon note nothing
    november number october off office often ok only order other outside own page paid paper part pay
    perfect person phone photo plan play point prefer problem question quick quiet quite rather read
    ready real really reason remember rest room run same sat saturday saw school second sent september
    set seven share short sign since sit six sixty sleep small somebody someone soon sort sound special
    spend spoke stand step stood street sunday sure talked test thank themselves thirty though thought
    thousand thursday till together tonight top town train tuesday turned twelve twenty understand until
    usual wait walk wednesday weekend whether whole woman wonder world worse worth wrote yet young
    """,
    0.007: """
    able accept account act address afford age ago agree air alone along also amount appear apply attend
    autumn available avoid baby bag base bath bed behind belong below beside bet bike bill birthday black
    blue board body boss bottom boy breakfast bright brother brown bus business busy card case catch
    cause certain chair chance cheap city class clean clear clock clothes club coffee colleague color
    colour common company complete computer consider contact continue cook cool copy corner cost could
    country couple course cover create customer cut dad date daughter dead deal dear depend desk detail
    discuss doctor dog doubt dress drink drive drop dry dull email empty enjoy enter entire event exact
    example expect expensive experience explain extra eye face fact father favorite favourite feet fight
    file fill floor follow foot forward girl glad glass grandfather grandmother great green ground group
    grow grown hair handle hang hate health heavy high hit hobby holiday hope hospital huge hungry hurry
    husband important include interest issue join journey kid kitchen laugh law lead letter level lie
    lift likely limit local low lucky manage manager mark medium member mention message middle million
    miss mistake model modern mom moment mouth mum music neighbor neighbour nervous news newspaper normal
    notice offer original pack pain pair parent parents park particular party pass past per period pick
    picture piece plate please plenty popular position possible practice practise prepare present press
    pretty price private probably process produce product project proper protect proud prove provide
    public pull purpose push quarter radio raise range rate reach receive recent recommend record red
    reduce refuse regular relax remain remind rent repeat reply report request require return ride ring
    road rule safe sale save search seat seem sell sense separate serious serve service several shape
    shop shout shut side similar simple single sister size skill slow smart smell smile son sorry space
    speak spring stair state station store story straight strange strong student study stuff style
    subject suddenly suggest suit summer supper support suppose surprise system table tea teach teacher
    team tend terrible texts thanks thick thin third ticket tired total touch toward travel trip trouble
    true trust truth type uncle unless update upset useful version view visit voice warm wash watch water
    wear weather wife window winter wish wore worker worry wrong yellow zero
    """,
}


@lru_cache(maxsize=1)
def _shares() -> Mapping[str, float]:
    shares: dict[str, float] = {}
    for share, listed in _BY_SHARE.items():
        for term in terms(listed):
            shares[term] = max(share, shares.get(term, 0.0))
    return shares


def everyday_share(term: str) -> float:
    """The share of everyday memories that hold the term, as `lexical.terms` gives it."""
    return _shares().get(term, 0.0)
