// Package expr compiles and evaluates the expressions of guards and checks. They
// are written in the Common Expression Language, with its extensions for strings,
// lists, sets and mathematics:
//
//	size(dough.text) > 3 && dough.text.startsWith('heavy')
//
// A variable holds JSON. Names that it does not know and other mistakes are found
// when an expression is compiled, its place in them; the type of a variable is
// known only while it runs. Integers within 64 bits are int, all other numbers
// double, and both compare with each other.
//
// An expression may come from anywhere, a model included: it reaches nothing but
// its variables, and Compile and Program.Eval bound what it costs. Text is at most
// 8,192 characters long and 50 levels deep, with 12 macros (all, exists, map …)
// and 2,000 nodes after these were expanded. What runs is stopped after about a million operations, or when a value
// grows beyond about a million elements.
package expr
