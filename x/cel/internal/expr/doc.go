// Package expr compiles and evaluates the expressions of guards and checks. They
// are written in the Common Expression Language, with its extensions for strings,
// lists, sets and mathematics:
//
//	size(dough.text) > 3 && dough.text.startsWith('heavy')
//
// Variables are JSON. Unknown names and other mistakes are found when an expression is compiled, with their place. The type of a
// variable is only known at run time. Integers that fit in 64 bits are int, all other numbers are double, and the two can be
// compared with each other.
//
// An expression may come from anywhere, even from a model, because it can use only its variables, and Compile and Program.Eval
// limit its cost. Its text can have at most 8,192 characters, 50 levels of nesting, 12 macros (all, exists, map …) and 2,000
// nodes after macro expansion. An evaluation is stopped after about a million operations, or when a value has more than about a
// million elements.
package expr
