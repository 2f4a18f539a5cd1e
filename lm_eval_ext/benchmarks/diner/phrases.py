"""Phrases around a dish's name, in Chinese: a table of patterns, beside a few English ones.

They apply to text of simplified characters with the punctuation of ASCII (:func:`.answers.plain`).
"""

import re

LINE_END = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")
QUESTION = re.compile(
    r"(?:请问)?(?:(?:(?:这个菜谱|这道菜)的?)?(?:菜名|名字)(?:是|叫)什么"
    r"|(?:这个菜谱|这道菜)叫什么(?:名字|菜)?)[\s?\"”」]*"
)
PROMPT_WORDS = re.compile(
    r"\W*(?:问题?|提问|题目|question|q|user|用户)?\W*|\s*[\"“][^\"“”]*[,。;!?][^\"“”]*[\"”]\s*",
    re.IGNORECASE,
)
"""Words that may precede a repeated question: a label or the quoted instruction."""
MARKDOWN = re.compile(r"`{3,}[a-z]*|~{3,}[a-z]*|`|\*+|__|^[ \t]*(?:#+|>+|[-+])[ \t]+", re.MULTILINE)
SQUARE_BRACKETS = re.compile(r"[\[【〖〔]([^\[\]【】〖〗〔〕]{1,60})[\]】〗〕]")  # noqa: RUF001
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
BY_LABEL = re.compile(
    rf"(?:{_LABEL}[\"'”」』)\]】]*\s*(?:{_SURELY}(?:是|为|{_NAMED})\s*:?|[:=]|(?={SQUARE_BRACKETS.pattern}))"
    rf"|^答\s*:)\s*(?!什么|不是|并非|不叫|不应)",
    re.IGNORECASE,
)
BY_CALL = re.compile(
    rf"(?:(?:[道菜谱品肴它],?|{_SAYS}|^{_THIS}){_SURELY}被?{_NAMED}|^{_WHO}{_NAMED}"
    rf"|^被?(?!叫){_NAMED}|^叫(?:[做作它]|(?=\s*:)))"
    r"\s*:?\s*(?!什么|不是|并非|不叫|不应)"
)
BY_THIS = re.compile(
    rf"(?:^(?:{_BECAUSE}.{{0,80}}?,)?{_THINK}(?:{_THIS}|它)?{_SURELY}是|^{_ABOVE}都?{_SURELY}[是为]"
    rf"|(?:{_THIS_DISH}|{_SAYS}){_SURELY}是(?!一[道种款份]))\s*:?\s*"
)
_NOT_GIVEN = (
    "^(?:抱歉|对不起|很遗憾|虽然|由于|因为|尽管|我)?,?(?:这个|这道|该|此|本)?(?:菜谱|食谱|菜|文|原文|题目|步骤|描述|内容"
    "|说明)?[里中]?并?(?:没有?|未|无法|不能|不知道|不清楚|不确定)"
)
BY_GUESS = re.compile(
    rf"{_NOT_GIVEN}.{{0,40}}?[,。;.!:].{{0,40}}?"
    rf"(?:最?(?:有|很)?可能|或许|也许|大概|估计|推测|猜测|应该?){{1,2}}(?:就?是|为|{_NAMED})\s*:?\s*"
)
FURTHER_ANNOUNCEMENT = re.compile(
    rf"(?:一[种个道份])?(?:菜谱|食谱|菜)的{_LABEL},?{_SURELY}(?:是|为|{_NAMED})\s*:?\s*(?!什么)|"
    rf"(?:{_THINK}(?:{_THIS}|它)的?{_LABEL}?|{_LABEL}){_SURELY}(?:是|为|{_NAMED}|:)\s*:?\s*(?!什么|不是|并非|不叫|不应)"
    rf"|(?:应该?|可能|可以?|大概){{1,2}}(?:是|为|{_NAMED})\s*:?\s*|{_CALL}|是",
    re.IGNORECASE,
)
"""An announcement at the beginning of what another one announces."""
BEHIND_NAME = re.compile(
    rf"^(?!我|它|根据|看|{_ABOVE})(.{{1,60}}?){_SURELY}是(?:{_THIS}的?{_LABEL}|一[道种款份])"
)
OPENING = re.compile("^(?:好的|好|当然|没问题|可以|嗯|是的|您好|你好|明白了?)(?:[,.!~。\\s]+|$)")
REASONING = re.compile("首先|第一步?,|让我们?|我们先|先来?看|步骤")
"""The beginning of a line of thoughts before the name."""
ONLY_NOT_GIVEN = re.compile(f"{_NOT_GIVEN}[^,]*菜名[^,]*$")
_PRAISE = "(?:美味|经典|简单|传统|家常|地道|特色|好吃|可口|快手|营养|健康|常见|著名|有名)"
_WAY = (
    "(?:(?:家常|简单|具体|详细|完整|全部|主要|基本)的?)?(?:制作|烹饪|烹制|烹调)?"
    "(?:做法|方法|步骤|全?过程|流程|教程|菜谱|食谱)"
)
_MAKING = f"(?:关于|如何|怎样|怎么|教你)?(?:制作|烹饪|烹制|烹调|做)?(?=.+的{_WAY}$)"
ONLY_LABEL = re.compile(
    rf"(?:{_LABEL}|(?:这|{_ABOVE}){_SURELY}[是为]{_WAY}[.。]?)\s*", re.IGNORECASE
)
AROUND_NAME = re.compile(
    f"^一[道份款种个](?:{_PRAISE}{{1,2}}的)?(?:{_MAKING})?|^{_MAKING}"
    f"|(?:这道菜)?的{_WAY}$|(?:吧|呢)$"
)
NAME_END = re.compile(r"[,.!?;:。|~\t]|\s[-–]+\s|—|--|或者?(?=[叫称])")  # noqa: RUF001
SEVERAL = re.compile(r"\s*[/、]\s*|或者?(?![叫称])|还是")
"""Signs and words between several names; "或称" is another name of the same dish."""
ALSO_POSSIBLE = re.compile(r"[,;]?\s*也(?:有可能|可能|许|或许)(?:是|叫)")
SENTENCE_END = re.compile(r"[.!?;:]\s")
_QUOTES = ('""', "''", "“”", "‘’", "「」", "『』", "《》", "«»", "„“", "””", "〝〞")  # noqa: RUF001
QUOTED = re.compile("|".join(f"{q[0]}([^{q}]{{1,60}}){q[1]}" for q in _QUOTES))
FINAL = re.compile(
    rf"(?:最终|最后)的?(?:{_LABEL}){_SURELY}(?:是|为|{_NAMED}|:)"
    r"|\bfinal\s(?:answer|name)(?:\sis)?\s*:?",
    re.IGNORECASE,
)
"""A label that says that the answer is the last one."""

ENGLISH_LABEL = re.compile(
    r"\W*(?:the\s)?(?:final\s|correct\s)?(?:answer|(?:dish\s)?name)\W*", re.IGNORECASE
)
"""A line that only introduces the next one."""

ENGLISH_DENIAL = re.compile(
    r"\b(?:not|cannot|never|neither|nor|anything but|except|why|for example|for instance|e\.g\."
    r"|such as|if|examples?|rejected|suppose|samples?|perhaps|maybe|candidates?|wrong|incorrect"
    r"|mistakes?|unlikely|might|could|possible|possibly)(?!\w)"
    r"|n't\b|^\W*is the\b",
    re.IGNORECASE,
)
"""Words that deny a name behind them, or make an example of it."""

DENIED_BEHIND = re.compile(
    r"[\"'”」`*)\s]{0,4}(?:is|was|would be)(?:\snot\b|n't\b|\s(?:wrong|incorrect|false))"
    r"|[\"'”」]?(?:是错|不对|不正确|错误)",
    re.IGNORECASE,
)
"""Words that deny the name before them."""

ENGLISH_WORDS = re.compile(r"[A-Za-z]{2,}\W+[A-Za-z]{2,}")
"""English prose; a name behind it is one only if the prose announces it."""

CONTINUATION = re.compile(r"\n\s*(?:question|user|human|q)\s*\d*\s*:", re.IGNORECASE)
"""The beginning of a further prompt that a model writes itself."""

JSON_OBJECT = re.compile(r'\s*\{\s*"[^"\n]{1,60}"\s*:')
"""JSON whose texts are no single answer, if no name was read out of it."""

OR = re.compile(r"\W*(?:or\b|或者?|还是).*", re.IGNORECASE)
"""A line that offers another name."""

BY_ENGLISH = re.compile(
    r"\b(?:dish|recipe|name|answer|title)\b[^\n:。]{0,40}?\b(?:is|be|called|named)\b"
    r"(?!\snot\b|\sanything\b)(?:\scalled|\snamed)?\s*:?\s*",
    re.IGNORECASE,
)

DENIED = re.compile(
    r"(?:不是|不叫|并非|而非|不应|不能|不该|不算|不会|绝非|除了|\bnot\b)[^,。;!?\n]{0,6}$"
)
"""Words that deny the quoted text behind them."""

EXAMPLE = re.compile(
    r"(?:比如|例如|譬如|举例|示例|例子|像是|e\.g\.|for example)[^。;!?\n]{0,20}$", re.IGNORECASE
)
"""Words that make an example of the name behind them."""

CORRECTION = re.compile(
    r"(?:^|[。.!?,;\n])\s*(?:(?:不对|更正|纠正|修正|改正|错了)\s*[,:。!、]+"
    r"|(?:no|wait|actually|correction|rather)\s*[,:])\s*",
    re.IGNORECASE,
)
"""Words that take back the names before them."""

LIST_MARK = re.compile(r"\s*(?:[(]?\d{1,2}[.、)]|[-*•·])\s*")

Pattern = re.Pattern[str]

ANNOUNCEMENTS: tuple[Pattern, ...] = (BY_LABEL, BY_ENGLISH, BY_CALL, BY_THIS, BY_GUESS)
"""Announcements of a name, the strongest first."""

STRONG_ANNOUNCEMENTS: tuple[Pattern, ...] = (BY_LABEL, BY_ENGLISH, BY_CALL)
"""Announcements that win over a short first line."""

QUESTIONED = re.compile(r"[^,。.!?:;]{1,40}\?")
"""A name that is only asked about."""
