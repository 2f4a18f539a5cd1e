"""What an answer says: the dish's name.

:func:`name_of` finds the name by these steps:

1. *Text*: thinking is dropped, and what follows a special token
   (:func:`~lm_eval_ext.answers.turn.said`). Of the first 4,000 characters, full-width letters,
   digits and punctuation become ASCII (NFKC), control and invisible characters are removed,
   traditional characters become simplified ones, and Markdown markup is removed. Where the question
   (菜名是什么) is repeated, what precedes it is the answer, or what follows if nothing but the
   prompt's own words precedes it.
2. *Line*: the first line that does more than introduce the next one (好的, 菜名, a colon at its
   end, the remark that no name is given). If it is longer than 20 characters and neither announces
   nor quotes a name, the first line that does is taken instead, preferably by 菜名 or 答案.
3. *Start*: the name begins after an announcement. 菜名是 and 答案: take precedence over
   这道菜叫, 可命名为 and 我会叫它, that over 这道菜是, 以上是 and 应该是, and that over 可能是
   after the remark that no name is given. Announcements may follow each other (答: 这道菜叫).
   Without one, the name is what precedes 是这道菜的菜名 or 是一道; else the first quoted text; else
   the line without a leading 好的.
4. *End*: a quoted name ends with its quotation mark, another one before the first comma, full
   stop or similar mark, dash between spaces, slash or 或: of several names offered, the first
   counts. A leading 一道 (with 美味的 and the like), a trailing 的做法, with 制作 at the beginning,
   and a trailing 吧 are removed.
5. *Name*: text in brackets and all characters that are not Chinese are removed, as from the
   titles that the gold names come from (:func:`.glossary.clean_name`); a name that stands wholly
   in brackets loses only the brackets. Of a text without Chinese characters, the first sentence
   is returned unchanged; punctuation alone is no name.

A gold name given as the answer is returned unchanged.
"""

import re
import unicodedata

from lm_eval_ext.answers.turn import said
from lm_eval_ext.benchmarks.diner.glossary import (
    CHINESE,
    NOT_CHINESE,
    clean_name,
    simplified,
    unbracketed,
)

MAX_CHARS = 4_000
"""Characters of an answer that are searched for the name."""

MAX_PLAIN = 20
"""Longest line, in characters, that may be a name without an announcement."""

MOST_AROUND = 3
"""How many of 一道, 的做法, 吧 and the like are removed from around a name."""

_LINE_END = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")
_ASKED = re.compile(
    r"(?:请问)?(?:(?:(?:这个菜谱|这道菜)的?)?(?:菜名|名字)(?:是|叫)什么"
    r"|(?:这个菜谱|这道菜)叫什么(?:名字|菜)?)[\s?\"”」]*"
)
_PROMPT = re.compile(
    r"\W*(?:问题?|提问|题目|question|q|user|用户)?\W*|\s*[\"“][^\"“”]*[,。;!?][^\"“”]*[\"”]\s*",
    re.IGNORECASE,
)
"""What may precede a repeated question: a label or the quoted instruction."""
_MARKDOWN = re.compile(r"`{3,}[a-z]*|`|\*+|__|^[ \t]*(?:#+|>+|[-+])[ \t]+", re.MULTILINE)
_SQUARE = re.compile(r"[\[【〖〔]([^\[\]【】〖〗〔〕]{1,60})[\]】〗〕]")  # noqa: RUF001
"""Brackets that may stand for quotation marks."""

_SURELY = (
    "(?:应该|应当|应|最?(?:有|很)?可能|或许|也许|大概|估计|推测|就|一般|可以?|能|通常|其实){0,3}"
)
_LABEL = (
    "(?:菜名|菜品(?:名称?)?|菜肴名称?|菜谱名称?|名称|名字|标题|答案|回答|(?:dish[ _]?)?name|answer)"
)
_THIS_DISH = "(?:这|该|此|本)(?:一?[道个份款])?(?:菜谱|食谱|菜品|菜肴|菜|料理|美食)"
_THIS = f"(?:{_THIS_DISH}|[这该此](?:一?[道个份款])?)"
_BECAUSE = "(?:根据|按|从|由|综合|综上|通过|经过|看|所以|因此|那么|但|不过)"
_THINK = "(?:我(?:认为|觉得|猜测?|想|推测|判断)|看起来|看来)?,?"
_CALL = "叫(?![花化][鸡仔])"
_IT = f"(?:它|其|{_THIS_DISH})"
_NAMED = (
    f"(?:叫做|叫作|叫它|[叫称]{_IT}(?:为|作|做)?|{_CALL}|称为|称作|称之为|名为|名{_CALL}|名曰"
    f"|(?:命|取|起)个?名(?:为|作|是|{_CALL})?)"
)
_MAY = (
    "(?:个人|一般|通常|习惯|直接|不妨|最好|建议|打算|推荐|认为|觉得|倾向于?|愿意|可以?|应该?"
    "|[会想要来愿能就也更])"
)
_WHO = (
    f"(?:(?:如果|对于|要我|{_BECAUSE})[^,]{{0,40}},|那么?,?)?(?:{_THIS_DISH},?)?"
    f"(?:(?:[我你]们?|大家|人们){_MAY}{{0,4}}|(?:就|不妨|最好|可以?|应该?|能){{1,3}})(?:[将把给为管]{_IT}{_MAY}{{0,2}})?被?"
)
"""Who would call a dish by a name, at the beginning of a line."""
_ABOVE = (
    "(?:(?:以上|以下|上面|下面|上述|这些|这里)(?:的?(?:步骤|内容|文字|描述|说明|材料|菜谱|食谱|做法))?"
    "|这段(?:文字|话|描述|内容|步骤))"
)
_SAYS = "做的|介绍的|描述的|讲的"
_BY_LABEL = re.compile(
    rf"(?:{_LABEL}[\"'”」』)\]】]*\s*(?:{_SURELY}(?:是|为|{_NAMED})\s*:?|[:=]|(?={_SQUARE.pattern}))"
    rf"|^答\s*:)\s*(?!什么)",
    re.IGNORECASE,
)
_BY_CALL = re.compile(
    rf"(?:(?:[道菜谱品肴它],?|{_SAYS}|^{_THIS}){_SURELY}被?{_NAMED}|^{_WHO}{_NAMED}"
    rf"|^被?(?!叫){_NAMED}|^叫(?:[做作它]|(?=\s*:)))"
    r"\s*:?\s*(?!什么)"
)
_BY_THIS = re.compile(
    rf"(?:^(?:{_BECAUSE}.{{0,80}}?,)?{_THINK}(?:{_THIS}|它)?{_SURELY}是|^{_ABOVE}都?{_SURELY}[是为]"
    rf"|(?:{_THIS_DISH}|{_SAYS}){_SURELY}是(?!一[道种款份]))\s*:?\s*"
)
_NOT_GIVEN = (
    "^(?:抱歉|对不起|很遗憾|虽然|由于|因为|尽管|我)?,?(?:这个|这道|该|此|本)?(?:菜谱|食谱|菜|文|原文|题目|步骤|描述|内容"
    "|说明)?[里中]?并?(?:没有?|未|无法|不能|不知道|不清楚|不确定)"
)
_BY_GUESS = re.compile(
    rf"{_NOT_GIVEN}.{{0,40}}?[,。;.!:].{{0,40}}?"
    rf"(?:最?(?:有|很)?可能|或许|也许|大概|估计|推测|猜测|应该?){{1,2}}(?:就?是|为|{_NAMED})\s*:?\s*"
)
_AGAIN = re.compile(
    rf"(?:{_THINK}(?:{_THIS}|它)的?{_LABEL}?|{_LABEL}){_SURELY}(?:是|为|{_NAMED}|:)\s*:?\s*(?!什么)"
    rf"|(?:应该?|可能|可以?|大概){{1,2}}(?:是|为|{_NAMED})\s*:?\s*|{_CALL}|是",
    re.IGNORECASE,
)
"""An announcement at the beginning of what another one announces."""
_BEHIND = re.compile(
    rf"^(?!我|它|根据|看|{_ABOVE})(.{{1,60}}?){_SURELY}是(?:{_THIS}的?{_LABEL}|一[道种款份])"
)
_OPENING = re.compile("^(?:好的|好|当然|没问题|可以|嗯|是的|您好|你好|明白了?)(?:[,.!~。\\s]+|$)")
_ONLY_NOT_GIVEN = re.compile(f"{_NOT_GIVEN}[^,]*菜名[^,]*$")
_PRAISE = "(?:美味|经典|简单|传统|家常|地道|特色|好吃|可口|快手|营养|健康|常见|著名|有名)"
_WAY = (
    "(?:(?:家常|简单|具体|详细|完整|全部|主要|基本)的?)?(?:制作|烹饪|烹制|烹调)?"
    "(?:做法|方法|步骤|全?过程|流程|教程|菜谱|食谱)"
)
_MAKING = f"(?:关于|如何|怎样|怎么|教你)?(?:制作|烹饪|烹制|烹调|做)?(?=.+的{_WAY}$)"
_ONLY_LABEL = re.compile(
    rf"(?:{_LABEL}|(?:这|{_ABOVE}){_SURELY}[是为]{_WAY}[.。]?)\s*", re.IGNORECASE
)
_AROUND = re.compile(
    f"^一[道份款种个](?:{_PRAISE}{{1,2}}的)?(?:{_MAKING})?|^{_MAKING}"
    f"|(?:这道菜)?的{_WAY}$|(?:吧|呢)$"
)
_END = re.compile(r"[,.!?;:、。/|~\t]|\s[-–]+\s|—|--|或者?")  # noqa: RUF001
_PLAIN_END = re.compile(r"[.!?;:]\s")
_QUOTES = ('""', "''", "“”", "‘’", "「」", "『』", "《》", "«»", "„“", "””", "〝〞")  # noqa: RUF001
_QUOTED = re.compile("|".join(f"{q[0]}([^{q}]{{1,60}}){q[1]}" for q in _QUOTES))


def name_of(answer: str) -> str:
    """Finds the name in a model's answer, by the steps in the module's docstring.

    Returns:
        Chinese characters only; the first sentence of an answer that has none; "" for an answer
        without a name.
    """
    line = _line(plain(answer))
    if CHINESE.search(line):
        return _name(_place(line))
    sentence = _PLAIN_END.split(line.strip("\"' .!?"), maxsplit=1)[0]
    return sentence.strip("\"' ") if any(map(str.isalnum, sentence)) else ""


def plain(answer: str) -> str:
    """Step 1: the text of an answer that may contain the name."""
    text = unicodedata.normalize("NFKC", said(answer)[:MAX_CHARS])[:MAX_CHARS]
    text = _LINE_END.sub("\n", text)
    text = "".join(char for char in text if char in "\n\t" or unicodedata.category(char)[0] != "C")
    text = _MARKDOWN.sub("", simplified(text))
    return _without_question(text).strip()


def _without_question(text: str) -> str:
    """What precedes the first question; what follows it, if only the prompt's words precede it."""
    while asked := _ASKED.search(text):
        whole = text[: asked.start()]
        before, _, line = whole.rpartition("\n")
        if not _PROMPT.fullmatch(whole):
            if any(not _leads_up(one.strip()) for one in before.split("\n") if one.strip()):
                return before
            if not _PROMPT.fullmatch(line):
                return line
        text = text[asked.end() :]
    return text


def _line(text: str) -> str:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    while len(lines) > 1 and _leads_up(lines[0]):
        del lines[0]
    if not lines:
        return ""
    first = lines[0]
    if len(first) > MAX_PLAIN and not _announced(first) and not _QUOTED.search(first):
        labelled = (line for line in lines if _BY_LABEL.search(line))
        announced = (line for line in lines if _announced(line))
        return next(labelled, next(announced, first))
    return first


def _leads_up(line: str) -> bool:
    rest = _OPENING.sub("", line)
    lead = _ONLY_LABEL.fullmatch(rest) or _ONLY_NOT_GIVEN.match(rest)
    return not rest or rest.endswith(":") or bool(lead)


def _announced(line: str) -> str | None:
    for announcement in (_BY_LABEL, _BY_CALL, _BY_THIS, _BY_GUESS):
        for found in announcement.finditer(line):
            if CHINESE.search(line, found.end()) or found[0] == line:
                rest = line[found.end() :]
                while again := _AGAIN.match(rest):
                    rest = rest[again.end() :]
                return rest
    behind = _BEHIND.search(line)
    return behind[1] if behind else None


def _place(line: str) -> str:
    line = _OPENING.sub("", line)
    if (quoted := _QUOTED.match(line)) and _plain_name(quoted[quoted.lastindex or 0]):
        return quoted[0]
    announced = _announced(line)
    if announced is not None:
        return announced
    for quoted in _QUOTED.finditer(line):
        if CHINESE.search(quoted[0]):
            return quoted[0]
    return line


def _plain_name(text: str) -> bool:
    """Whether all of a text may be a name: no label, no sentence."""
    return bool(CHINESE.search(text)) and not _END.search(text) and not _ONLY_LABEL.fullmatch(text)


def _name(text: str) -> str:
    if quoted := _QUOTED.match(text.strip()):
        text = quoted[quoted.lastindex or 0]
    elif (square := _SQUARE.match(text.strip())) and _only_around(text.strip()[square.end() :]):
        text = square[1]
    bare = unbracketed(text)
    text = bare if CHINESE.search(bare) else text
    pieces = [piece.strip() for piece in _END.split(text) if CHINESE.search(piece)]
    name = pieces[0] if pieces else text
    for _ in range(MOST_AROUND):
        name = _AROUND.sub("", name)
    return clean_name(name) or NOT_CHINESE.sub("", name)


def _only_around(text: str) -> bool:
    """Whether nothing of a name follows, up to its end."""
    return not CHINESE.search(_AROUND.sub("", _END.split(text, maxsplit=1)[0].strip()))
