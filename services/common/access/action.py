"""Actions and the kinds of objects that they are done to, in the words of Broker-J's ACL files."""

from __future__ import annotations

from services.common.identity_enum import IdentityEnum


class Action(IdentityEnum):
    """An operation."""

    ACCESS = "ACCESS"
    ACCESS_LOGS = "ACCESS_LOGS"
    BIND = "BIND"
    CONFIGURE = "CONFIGURE"
    CONSUME = "CONSUME"
    CREATE = "CREATE"
    DELETE = "DELETE"
    INVOKE = "INVOKE"
    PUBLISH = "PUBLISH"
    PURGE = "PURGE"
    SHUTDOWN = "SHUTDOWN"
    UNBIND = "UNBIND"
    UPDATE = "UPDATE"
    LOOK = "LOOK"
    """To learn whether something exists (a passive declare): no rule of a file is about it."""


class Kind(IdentityEnum):
    """A kind of objects."""

    BROKER = "BROKER"
    EXCHANGE = "EXCHANGE"
    GROUP = "GROUP"
    MANAGEMENT = "MANAGEMENT"
    METHOD = "METHOD"
    QUEUE = "QUEUE"
    USER = "USER"
    VIRTUALHOST = "VIRTUALHOST"
    VIRTUALHOSTNODE = "VIRTUALHOSTNODE"


class Property(IdentityEnum):
    """A property of an object that a rule may name."""

    ROUTING_KEY = "ROUTING_KEY"
    NAME = "NAME"
    QUEUE_NAME = "QUEUE_NAME"
    OWNER = "OWNER"
    TYPE = "TYPE"
    ALTERNATE = "ALTERNATE"
    DURABLE = "DURABLE"
    EXCLUSIVE = "EXCLUSIVE"
    TEMPORARY = "TEMPORARY"
    AUTO_DELETE = "AUTO_DELETE"
    COMPONENT = "COMPONENT"
    PACKAGE = "PACKAGE"
    CLASS = "CLASS"
    FROM_NETWORK = "FROM_NETWORK"
    FROM_HOSTNAME = "FROM_HOSTNAME"
    VIRTUALHOST_NAME = "VIRTUALHOST_NAME"
    METHOD_NAME = "METHOD_NAME"
    ATTRIBUTES = "ATTRIBUTES"
    CREATED_BY = "CREATED_BY"
    CONNECTION_LIMIT = "CONNECTION_LIMIT"
    CONNECTION_FREQUENCY_LIMIT = "CONNECTION_FREQUENCY_LIMIT"
