"""The grammar, to be read beside JMS 3.8.1.1; the precedence is that of SQL92.

Broker-J's additions: `%`, NULL, hexadecimal and octal numbers, identifiers in double quotes, comments.

TEXTS is what IN has behind it, in one piece: lists are long. One with a comment in it is read text by text.
"""

from __future__ import annotations

from typing import Final

GRAMMAR: Final = r"""
?selector: either
?either: both (_OR both)*
?both: negation (_AND negation)*
?negation: condition
    | _NOT negation -> negated
?condition: sum
    | sum COMPARISON sum -> compared
    | sum _IS _NULL -> is_null
    | sum _IS _NOT _NULL -> is_not_null
    | sum _BETWEEN sum _AND sum -> between
    | sum _NOT _BETWEEN sum _AND sum -> not_between
    | sum _IN TEXTS -> among
    | sum _NOT _IN TEXTS -> not_among
    | sum _IN "(" TEXT ("," TEXT)* ")" -> among
    | sum _NOT _IN "(" TEXT ("," TEXT)* ")" -> not_among
    | sum _LIKE TEXT [_ESCAPE TEXT] -> like
    | sum _NOT _LIKE TEXT [_ESCAPE TEXT] -> not_like
?sum: product
    | sum SIGN product -> calculated
?product: signed
    | product FACTOR signed -> calculated
?signed: primary
    | SIGN signed -> signed
?primary: "(" either ")"
    | TEXT -> text
    | DECIMAL -> exact
    | HEXADECIMAL -> exact
    | OCTAL -> octal
    | APPROXIMATE -> approximate
    | _TRUE -> true
    | _FALSE -> false
    | _NULL -> null
    | NAME -> identifier
    | QUOTED -> quoted

_AND.2: /and(?![\w$])/i
_BETWEEN.2: /between(?![\w$])/i
_ESCAPE.2: /escape(?![\w$])/i
_FALSE.2: /false(?![\w$])/i
_IN.2: /in(?![\w$])/i
_IS.2: /is(?![\w$])/i
_LIKE.2: /like(?![\w$])/i
_NOT.2: /not(?![\w$])/i
_NULL.2: /null(?![\w$])/i
_OR.2: /or(?![\w$])/i
_TRUE.2: /true(?![\w$])/i

COMPARISON: "<>" | "<=" | ">=" | "=" | "<" | ">"
SIGN: "+" | "-"
FACTOR: "*" | "/" | "%"
TEXTS.1: /\(\s*'(?:[^']|'')*'(?:\s*,\s*'(?:[^']|'')*')*\s*\)/
TEXT: /'(?:[^']|'')*'/
QUOTED: /"(?:[^"]|"")+"/
NAME: /(?!\d)[\w$]+/
APPROXIMATE.1: /(?:\d+\.\d*(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?|\d+e[+-]?\d+)[df]?(?![\w$.])/i
HEXADECIMAL: /0x[0-9a-f]+l?(?![\w$.])/i
OCTAL: /0[0-7]+l?(?![\w$.])/i
DECIMAL: /(?:0|[1-9]\d*)l?(?![\w$.])/i

COMMENT: /--[^\n]*/ | /\/\*(?:[^*]|\*(?!\/))*\*\//
SPACE: /\s+/
%ignore COMMENT
%ignore SPACE
"""
