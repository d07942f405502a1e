"""The topology: exchanges, bindings and queue definitions per virtual host, decided without I/O.

A request goes in; the answer comes out, and with it the effects: records to be kept, and what watchers must learn.
"""
