"""AMQP 1.0 (ISO/IEC 19464): links, their credit and outcomes, over the vocabulary that all protocols share."""
