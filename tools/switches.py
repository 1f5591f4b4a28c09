"""Writes a copy of a Rust file in which every mutant is there at once, behind a switch of its own.

Each piece lies between comments that say whose it is: `/*<7*/…/*>7*/` is what mutant 7 puts in, `/*[7,8*/…/*]7,8*/`
what it and others may replace. By them an error of the compiler is laid at the mutant's door that made it.
"""

import re
from collections import defaultdict

import tree_sitter
import tree_sitter_rust

RUST = tree_sitter.Language(tree_sitter_rust.language())

# What the compiler works out asks no switch, and nothing in a macro's words is known to be an expression.
FIXED = {"array_type", "attribute_item", "macro_invocation", "static_item", "type_arguments"}

# Constants of these types are worked out anew, in a function beside them, wherever a function of their file uses them.
NUMBER = re.compile(r"Micros|[iu](8|16|32|64|128|size)")


class File:
    def __init__(self, source, mutants, switch):
        """`mutants` are those of this file, as cargo-mutants lists them, with a `number`; `switch` is the function
        that says whether one is in force."""
        self.source, self.switch = source.encode(), switch
        self.root = tree_sitter.Parser(RUST).parse(self.source).root_node
        # Those that were put in, and those that no compiler takes: no chain with a `let` in it has an `||`.
        self.placed, self.chained = set(), set()
        lines = source.splitlines(keepends=True)
        begins = [0]
        for line in lines:
            begins.append(begins[-1] + len(line.encode()))
        self.mutants = defaultdict(list)
        for mutant in mutants:
            start = mutant["span"]["start"]
            before = lines[start["line"] - 1][: start["column"] - 1]
            at = begins[start["line"] - 1] + len(before.encode())
            node = self.function(at) if mutant["genre"] == "FnValue" else at
            self.mutants[mutant["genre"], node].append(mutant)
            if self.root.descendant_for_byte_range(at, at + 1).parent.type == "let_chain":
                self.chained.add(mutant["number"])
        self.places = [at for _, at in self.mutants]
        self.constants = {self.name(node) for node in self.all(self.root, "const_item") if self.is_switched(node)}

    def all(self, node, kind):
        """The nodes of a kind in one, but for those that stay as they are."""
        if node.type == kind:
            yield node
        if node.type not in FIXED and not is_const(node):
            for child in node.children:
                yield from self.all(child, kind)

    def name(self, item):
        return item.child_by_field_name("name").text.decode()

    def is_switched(self, item):
        """Whether a constant is a number that mutants change and some function uses."""
        is_broken = any(item.start_byte <= at < item.end_byte for at in self.places)
        is_number = NUMBER.fullmatch(item.child_by_field_name("type").text.decode())
        names = self.all(self.root, "identifier")
        return bool(
            is_broken
            and is_number
            and item.parent.type in ("source_file", "block")
            and any(name.text.decode() == self.name(item) and is_value(name) for name in names)
        )

    def function(self, at):
        """Where the innermost function around a place begins."""
        node = self.root.descendant_for_byte_range(at, at + 1)
        while node is not None and node.type != "function_item":
            node = node.parent
        return node.start_byte if node is not None else None

    def text(self, start, end):
        return self.source[start:end].decode()

    def written(self):
        return self.write(self.root)

    def write(self, node):
        of_kind = getattr(self, node.type, None)
        if node.type in FIXED:
            return self.text(node.start_byte, node.end_byte)
        return of_kind(node) if of_kind else self.inner(node)

    def inner(self, node, instead=()):
        """A node as it stands but for its children, some of which are given."""
        instead = dict(instead)
        text, at = "", node.start_byte
        for child in node.children:
            text += self.text(at, child.start_byte) + (instead.get(child.id) or self.write(child))
            at = child.end_byte
        return text + self.text(at, node.end_byte)

    def piece(self, mutant, text):
        self.placed.add(mutant["number"])
        return f"/*<{mutant['number']}*/{text}/*>{mutant['number']}*/"

    def whole(self, mutants, text):
        numbers = ",".join(str(mutant["number"]) for mutant in mutants)
        return f"/*[{numbers}*/{text}/*]{numbers}*/"

    def choice(self, node, changed):
        """An expression, or what the mutant makes of it that is in force."""
        if not changed:
            return self.inner(node)
        branches = "".join(
            f"if {self.switch}({mutant['number']}) {{ {self.piece(mutant, text)} }} else " for mutant, text in changed
        )
        return self.whole([mutant for mutant, _ in changed], f"({branches}{{ {self.inner(node)} }})")

    def function_item(self, node):
        body = node.child_by_field_name("body")
        mutants = self.mutants["FnValue", node.start_byte]
        if is_const(node):
            return self.text(node.start_byte, node.end_byte)
        if not mutants:
            return self.inner(node)
        returns = "".join(
            f"if {self.switch}({mutant['number']}) {{ return {self.piece(mutant, mutant['replacement'])}; }} "
            for mutant in mutants
        )
        return self.inner(node, {body.id: "{ " + self.whole(mutants, returns) + self.inner(body)[1:]})

    def const_item(self, node):
        if self.name(node) not in self.constants:
            return self.constant(node)
        kind, value = (node.child_by_field_name(field) for field in ("type", "value"))
        function = f" fn {self.name(node)}__() -> {kind.text.decode()} {{ {self.write(value)} }}"
        return self.text(node.start_byte, node.end_byte) + function

    def constant(self, node):
        """What the compiler works out, but for the closures in it."""
        if node.type == "closure_expression":
            return self.inner(node)
        instead = {child.id: self.constant(child) for child in node.children if child.end_byte > child.start_byte}
        return self.inner(node, instead)

    def identifier(self, node):
        name = node.text.decode()
        return f"{name}__()" if name in self.constants and is_value(node) else name

    def binary_expression(self, node):
        operator = node.child_by_field_name("operator") or node.children[1]
        left, right = node.children[0].text.decode(), node.children[-1].text.decode()
        mutants = self.mutants["BinaryOperator", operator.start_byte]
        return self.choice(node, [(mutant, f"{left} {mutant['replacement']} {right}") for mutant in mutants])

    compound_assignment_expr = binary_expression

    def unary_expression(self, node):
        operand = node.children[-1].text.decode()
        return self.choice(node, [(mutant, operand) for mutant in self.mutants["UnaryOperator", node.start_byte]])

    def struct_expression(self, node):
        changed = []
        for field in node.child_by_field_name("body").children:
            rest = re.sub(r"^\s*,", "", self.text(field.end_byte, node.end_byte))
            for mutant in self.mutants["StructField", field.start_byte]:
                changed.append((mutant, self.text(node.start_byte, field.start_byte) + rest))
        return self.choice(node, changed)

    def match_arm(self, node):
        pattern = node.child_by_field_name("pattern")
        guard = pattern.child_by_field_name("condition")
        text = self.write(guard) if guard else ""
        if guard and guard.type in ("let_condition", "let_chain"):
            return self.inner(node)
        mutants = self.mutants["MatchArmGuard", guard.start_byte] if guard else []
        for mutant in mutants:
            number, constant = mutant["number"], self.piece(mutant, mutant["replacement"])
            text = self.whole([mutant], f"(if {self.switch}({number}) {{ {constant} }} else {{ {text} }})")
        for mutant in self.mutants["MatchArm", node.start_byte]:
            there = self.piece(mutant, f"!{self.switch}({mutant['number']})")
            text = f"{there} && ({text})" if text else there
        if not text:
            return self.inner(node)
        head = self.inner(pattern, {guard.id: text}) if guard else f"{self.inner(pattern)} if {text}"
        return self.inner(node, {pattern.id: head})


def is_const(node):
    """Whether the compiler may work a function out."""
    modifiers = [child for child in node.children if child.type == "function_modifiers"]
    return node.type == "function_item" and any("const" in child.text.decode().split() for child in modifiers)


def is_value(identifier):
    """Whether a name stands for a value that is worked out when the program runs."""
    node, before = identifier.parent, identifier
    if node.type == "scoped_identifier" or node.child_by_field_name("name") == identifier:
        return False
    while node is not None and not node.type.endswith("_item"):
        if node.type.endswith("_pattern") and before != node.child_by_field_name("condition"):
            return False
        if node.type == "array_expression" and before == node.child_by_field_name("length"):
            return False
        node, before = node.parent, node
    return node is not None and node.type == "function_item"


def at_fault(written, error):
    """The numbers of the mutants by which a written file did not compile, `error` being of the compiler."""
    written = written.encode()
    opened, pieces, wholes = {}, [], []
    for mark in re.finditer(rb"/\*([<>\[\]])([\d,]+)\*/", written):
        kind, numbers = mark.groups()
        if kind in b"<[":
            opened[kind, numbers] = mark.start()
        else:
            begin = opened[{b">": b"<", b"]": b"["}[kind], numbers]
            extent = (mark.end() - begin, begin, mark.end(), numbers)
            (pieces if kind == b">" else wholes).append(extent)
    spans = sorted(error["spans"], key=lambda span: not span["is_primary"])
    for extents in (pieces, wholes):
        for span in spans:
            start, end = span["byte_start"], span["byte_end"]
            around = [extent for extent in extents if extent[1] <= start and end <= extent[2]]
            if around:
                return {int(number) for number in min(around)[3].split(b",")}
    if (error["code"] or {}).get("code") == "E0004":
        return arms(written, spans[0]["byte_end"])
    return {int(number) for number in re.findall(r"/\*<(\d+)\*/", error["rendered"])}


def arms(written, at):
    """The mutants that take an arm from the `match` whose value ends at a place."""
    begin = end = written.index(b"{", at)
    depth = 0
    while depth or end == begin:
        depth += {b"{": 1, b"}": -1}.get(written[end : end + 1], 0)
        end += 1
    return {int(number) for number in re.findall(rb"/\*<(\d+)\*/!", written[begin:end])}
