"""The query API's expressions: parsed by a grammar, compiled to functions of an object. Pure."""
