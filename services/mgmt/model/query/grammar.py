"""The grammar of expressions: what a selector of JMS has, functions, and paths such as $parent.name."""

from __future__ import annotations

from typing import Final

GRAMMAR: Final = r"""
?expression: conjunction
    | expression "OR"i conjunction                      -> either
?conjunction: negation
    | conjunction "AND"i negation                       -> both
?negation: comparison
    | "NOT"i negation                                   -> negated
?comparison: sum
    | sum COMPARED sum                                  -> compared
    | sum "IS"i "NULL"i                                 -> is_null
    | sum "IS"i "NOT"i "NULL"i                          -> is_not_null
    | sum "LIKE"i STRING ["ESCAPE"i STRING]             -> like
    | sum "NOT"i "LIKE"i STRING ["ESCAPE"i STRING]      -> not_like
    | sum "BETWEEN"i sum "AND"i sum                     -> between
    | sum "NOT"i "BETWEEN"i sum "AND"i sum              -> not_between
    | sum "IN"i "(" arguments ")"                       -> among
    | sum "NOT"i "IN"i "(" arguments ")"                -> not_among
?sum: product
    | sum ADDED product                                 -> arithmetic
?product: sign
    | product MULTIPLIED sign                           -> arithmetic
?sign: atom
    | "-" sign                                          -> minus
    | "+" sign
?atom: NUMBER                                           -> number
    | STRING                                            -> string
    | "TRUE"i                                           -> true
    | "FALSE"i                                          -> false
    | "NULL"i                                           -> null
    | NAME "(" [arguments] ")"                          -> function
    | NAME ("." NAME)*                                  -> path
    | "(" expression ")"
arguments: expression ("," expression)*

columns: column ("," column)*
column: expression ["AS"i NAME]
orders: order ("," order)*
order: expression [DIRECTION]

DIRECTION.2: /(ASC|DESC)\b/i
COMPARED: "<>" | "<=" | ">=" | "=" | "<" | ">"
ADDED: "+" | "-"
MULTIPLIED: "*" | "/" | "%"
NUMBER: /\d+(\.\d+)?([eE][+-]?\d+)?/
STRING: /'(?:[^']|'')*'/
NAME: /[A-Za-z_$][\w$]*/
%ignore /\s+/
"""
