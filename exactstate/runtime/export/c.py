"""A machine as one C99 file without dependencies: tables, a step, a run, and a filter for standard input.

Compiled alone it is a program that reads symbols and writes outputs, as `exactstate run` does; compiled with
-DMACHINE_WITHOUT_MAIN it is a library.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from exactstate._types import Ints
from exactstate.errors import InvalidConfig
from exactstate.runtime.machine import Machine


def to_c(machine: Machine, *, name: str = "machine") -> str:
    """The machine in C; `name` begins every identifier."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise InvalidConfig(f"name={name!r} cannot begin identifiers; wanted a small letter, then letters, digits, _.")
    symbol, state, output = (
        f"uint{_bits(count)}_t" for count in (machine.n_symbols, machine.n_states, len(machine.output_names))
    )
    order = sorted(range(machine.n_symbols), key=lambda a: machine.symbols[a].encode())
    letters = machine.alphabet.by_letter
    main = (LETTERS if letters else WORDS).format(
        name=name, longest=max(len(symbol.encode()) for symbol in machine.symbols),
        most_words=max(machine.alphabet.most_words, 1),
    )  # fmt: skip
    return PROGRAM.format(
        name=name, NAME=name.upper(), symbol_type=symbol, state_type=state, output_type=output,
        symbols=machine.n_symbols, states=machine.n_states, outputs=len(machine.output_names), start=machine.start,
        symbol_names=_names(machine.symbols), state_names=_names(machine.states),
        output_names=_names(machine.output_names), order=_wrapped(map(str, order)),
        next=_rows(machine.automaton.tables), output_table=_rows(machine.readout),
        short=int(all(len(output) <= 1 for output in machine.output_names)), main=main,
    )  # fmt: skip


def quoted(text: str) -> str:
    """A string that means these bytes and nothing else: all but the plainest as three octal digits."""
    return '"' + "".join(chr(b) if _SAFE.fullmatch(bytes([b])) else f"\\{b:03o}" for b in text.encode()) + '"'


_SAFE = re.compile(rb"[A-Za-z0-9 _.,:;=+-]")


def _bits(count: int) -> int:
    return 8 if count <= 1 << 8 else 16 if count <= 1 << 16 else 32


def _names(names: Sequence[str]) -> str:
    return ",\n".join(f"    {{{quoted(name)}, {len(name.encode())}}}" for name in names)


def _rows(table: Ints) -> str:
    return ",\n".join(f"    {{{_wrapped(map(str, row))}}}" for row in table.tolist())


def _wrapped(items: Iterable[str], width: int = 24) -> str:
    every = list(items)
    return ",\n     ".join(", ".join(every[i : i + width]) for i in range(0, len(every), width))


PROGRAM = """\
/* A finite-state machine: {states} states, {symbols} symbols, {outputs} outputs. Written by exactstate.

   {name}_step(state, symbol)    the state after a symbol
   {name}_readout(state, symbol) the output when a symbol is read in a state
   {name}_run(...)               both, along a word
   {name}_find(text, length)     the number of a symbol, or -1
   {name}_symbol, {name}_state, {name}_output    names of numbers

   As a program: symbols on standard input, outputs on standard output.
   With -D{NAME}_WITHOUT_MAIN: a library. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {{
    {name}_symbols = {symbols},
    {name}_states = {states},
    {name}_outputs = {outputs},
    {name}_start = {start}
}};

typedef struct {{
    const char *text; /* UTF-8, ended by a zero that does not count */
    size_t length;
}} {name}_name;

const {name}_name {name}_symbol[{symbols}] = {{
{symbol_names}
}};

const {name}_name {name}_state[{states}] = {{
{state_names}
}};

const {name}_name {name}_output[{outputs}] = {{
{output_names}
}};

/* [symbol][state] */
static const {state_type} {name}_next[{symbols}][{states}] = {{
{next}
}};

static const {output_type} {name}_output_table[{symbols}][{states}] = {{
{output_table}
}};

/* symbols in the order of their names */
static const uint32_t {name}_order[{symbols}] = {{
    {order}
}};

uint32_t {name}_step(uint32_t state, uint32_t symbol) {{ return {name}_next[symbol][state]; }}

uint32_t {name}_readout(uint32_t state, uint32_t symbol) {{ return {name}_output_table[symbol][state]; }}

/* Reads symbols from *state on; writes outputs to `out` unless it is null. How many were read: fewer than `length`
   when the next one is no symbol. */
size_t {name}_run(const {symbol_type} *symbols, size_t length, uint32_t *state, {output_type} *out) {{
    size_t t;
    uint32_t q = *state;
    for (t = 0; t < length && (uint32_t)symbols[t] < (uint32_t){name}_symbols; ++t) {{
        if (out) out[t] = {name}_output_table[symbols[t]][q];
        q = {name}_next[symbols[t]][q];
    }}
    *state = q;
    return t;
}}

int64_t {name}_find(const char *text, size_t length) {{
    size_t low = 0, high = {symbols};
    while (low < high) {{
        const size_t middle = low + (high - low) / 2;
        const {name}_name *found = &{name}_symbol[{name}_order[middle]];
        const size_t common = found->length < length ? found->length : length;
        const int order = memcmp(found->text, text, common);
        if (order == 0 && found->length == length) return (int64_t){name}_order[middle];
        if (order < 0 || (order == 0 && found->length < length)) low = middle + 1;
        else high = middle;
    }}
    return -1;
}}

#ifndef {NAME}_WITHOUT_MAIN
#include <stdio.h>

static int {name}_is_blank(int c) {{ return c == ' ' || (c >= '\\t' && c <= '\\r'); }}

static uint32_t {name}_now = {name}_start;
static unsigned long {name}_line = 1;
static int {name}_begun = 0;

static void {name}_read(uint32_t symbol) {{
    const {name}_name *output = &{name}_output[{name}_readout({name}_now, symbol)];
    {name}_now = {name}_step({name}_now, symbol);
    if (output->length == 0) return;
    if ({name}_begun && !{short}) putchar(' ');
    fwrite(output->text, 1, output->length, stdout);
    {name}_begun = 1;
}}

static void {name}_end_line(void) {{
    if ({name}_begun) putchar('\\n');
    {name}_begun = 0;
    ++{name}_line;
}}

static int {name}_refuse(const char *text, size_t length) {{
    if ({name}_begun) putchar('\\n');
    fflush(stdout);
    fprintf(stderr, "{name}: unknown symbol '%.*s' on line %lu\\n", (int)length, text, {name}_line);
    return 2;
}}

{main}
#endif
"""
LETTERS = """\
/* Every symbol is one letter; blanks that are no symbols are passed over. */
int main(void) {{
    char letter[4];
    size_t length = 0, whole = 1;
    int c;
    while ((c = getchar()) != EOF) {{
        int64_t symbol;
        if (length == 0) whole = c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
        letter[length++] = (char)c;
        if (length < whole) continue;
        symbol = {name}_find(letter, length);
        if (symbol >= 0) {name}_read((uint32_t)symbol);
        else if (length == 1 && {name}_is_blank(c)) {{
            if (c == '\\n') {name}_end_line();
        }}
        else return {name}_refuse(letter, length);
        length = 0;
    }}
    if (length > 0) return {name}_refuse(letter, length);
    {name}_end_line();
    return fflush(stdout) != 0 || ferror(stdout);
}}"""
WORDS = """\
/* Symbols are separated by blanks. Words wait until they are known not to begin a longer symbol. */
int main(void) {{
    static char text[{most_words} * ({longest} + 1) + 1];
    size_t begin[{most_words} + 1], words = 0, length = 0, used, i, k;
    int c;
    begin[0] = 0;
    do {{
        c = getchar();
        if (c != EOF && !{name}_is_blank(c)) {{
            if (length - begin[words] == {longest}) return {name}_refuse(text + begin[words], {longest});
            text[length++] = (char)c;
            continue;
        }}
        if (length > begin[words]) {{
            text[length++] = ' ';
            begin[++words] = length;
        }}
        while (words == {most_words} || (words > 0 && (c == '\\n' || c == EOF))) {{
            int64_t symbol = -1;
            for (k = words; k > 0 && symbol < 0; --k) symbol = {name}_find(text, begin[k] - 1);
            if (symbol < 0) return {name}_refuse(text, begin[1] - 1);
            {name}_read((uint32_t)symbol);
            used = begin[++k]; /* it took k words */
            length -= used;
            memmove(text, text + used, length);
            words -= k;
            for (i = 1; i <= words; ++i) begin[i] = begin[i + k] - used;
        }}
        if (c == '\\n') {name}_end_line();
    }} while (c != EOF);
    {name}_end_line();
    return fflush(stdout) != 0 || ferror(stdout);
}}"""
