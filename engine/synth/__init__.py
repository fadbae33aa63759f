"""A made-up corpus with known answers: a year of a software company's chat with its clients.

Deterministic to the byte for a number of messages and a seed. Decides nothing about searching; what it
knows of the answers it hands over in an `AnswerKey`.
"""

from engine.synth.corpus import MAX_MESSAGES, MIN_MESSAGES, generate
from engine.synth.export import write_corpus
from engine.synth.planted import AnswerKey, Call, Story

__all__ = ["MAX_MESSAGES", "MIN_MESSAGES", "AnswerKey", "Call", "Story", "generate", "write_corpus"]
