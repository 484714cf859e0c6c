"""Writes a llama.cpp grammar that forces an answer to cite: free prose whose sentences end in marks
like `[^2]`.

Laws: a line ends only after a mark, unless it introduces what follows; the model chooses the mark,
among the existing ones. An answer without marks says that it does not know. All lengths are
bounded, since a model that cannot stop would go on for ever.
"""

from collections.abc import Iterable

MAX_LINES = 40
MAX_SENTENCES = 12
MAX_SENTENCE = 600
MAX_CODE = 1_200

# A full stop belongs to a word if a small letter, a digit or a sign follows it; before a space it
# ends the sentence, except after abbreviations. A bracket may open a link, but not a mark that does
# not exist. A code fence has its mark below it: beside it, the fence would not be closed.
_RULES = f"""\
root ::= unknown | (opening gap){{0,{MAX_LINES}}} closing
opening ::= indent (heading | lead | cited | fence)
closing ::= indent (cited | fence "\\n" marks)
gap ::= "\\n" "\\n"?
indent ::= " "{{0,8}}
heading ::= "#"{{1,6}} " " [^\\n]{{1,100}}
lead ::= bullet? words ":"
cited ::= bullet? sentence (join sentence){{0,{MAX_SENTENCES}}}
bullet ::= [-*] " " | [0-9]{{1,2}} ". "
sentence ::= words (stop " "? marks | " "? marks stop?)
join ::= [,;]? " "
words ::= [^ \\n.!?#[`] word{{1,{MAX_SENTENCE}}} | code word{{0,{MAX_SENTENCE}}}
word ::= [^\\n.!?[`] | stop within | "[" [^^\\n] | short | code
code ::= "`" [^`\\n]{{1,100}} "`"
stop ::= [.!?]
within ::= [a-z0-9./)"'&=-]
short ::= "e.g. " | "i.e. " | "vs. " | "cf. "
fence ::= "```" [a-z]{{0,12}} "\\n" [^`]{{1,{MAX_CODE}}} "```"
unknown ::= ("I " ("do not" | "don't") " know" | "I'm sorry" | "Sorry" | subject) rest "."
subject ::= "There is no " ("information" | "mention") | "The " origin " do" "es"? " not"
origin ::= ("provided " | "given " | "search ")? ("passages" | "notes" | "documents" | "text")
rest ::= ([^\\n.[] | "." within){{0,300}}
"""


def write_citation_grammar(numbers: Iterable[int]) -> str:
    """Return the grammar for an answer that cites sources with these numbers."""
    choices = " | ".join(f'"{number}"' for number in numbers)
    return f'{_RULES}marks ::= mark{{1,3}}\nmark ::= "[^" ({choices}) "]"\n'
