package edn

import (
	"fmt"
	"math/big"
)

// Kinds of values that only tests make.

// BigInt makes an integer of any size. Nil is 0. More than 10,000 digits are written but
// cannot be read again.
func BigInt(n *big.Int) Value {
	switch {
	case n == nil:
		return Int(0)
	case n.IsInt64():
		return Int(n.Int64())
	}
	return Value{kind: KindInt, text: n.String()}
}

// Decimal makes coefficient × 10^exponent, exactly. Nil is 0. More than 10,000 digits and
// exponents beyond ±10,000 are written but cannot be read again.
func Decimal(coefficient *big.Int, exponent int) Value {
	digits := "0"
	if coefficient != nil {
		digits = coefficient.String()
	}
	return decimal(digits, exponent)
}

// Symbol makes a symbol; the error explains why the name is invalid.
func Symbol(name string) (Value, error) {
	if reason := checkSymbol(name); reason != "" {
		return Value{}, &Error{Reason: fmt.Sprintf("symbol %s: %s", quote(name), reason)}
	}
	if _, ok := constant(name); ok {
		return Value{}, &Error{Reason: fmt.Sprintf("symbol %s: expected a name other than nil, true and false", quote(name))}
	}
	return Value{kind: KindSymbol, text: name}, nil
}

// List makes a list. It keeps the slice, which must not change afterwards.
func List(items ...Value) Value { return Value{kind: KindList, more: hold(items)} }

// Set makes a set. It keeps the slice, which must not change afterwards. A duplicate
// element is an [*Error] at the second.
func Set(items ...Value) (Value, error) {
	return unique(Value{kind: KindSet, more: hold(items)})
}

// ReadAll reads a text with any number of values, one after the other. Errors are of type
// [*Error].
func ReadAll(data []byte, limits Limits) ([]Value, error) {
	r, err := newReader(data, limits)
	if err != nil {
		return nil, err
	}
	var all []Value
	for {
		if err := r.skip(); err != nil {
			return nil, err
		}
		if r.at == len(r.text) {
			return all, nil
		}
		v, err := r.value("a value")
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
}

// BigInt returns an integer of any size as a new value; ok is false for other kinds.
func (v Value) BigInt() (n *big.Int, ok bool) {
	switch {
	case v.kind != KindInt:
		return nil, false
	case v.text == "":
		return big.NewInt(int64(v.num)), true
	}
	return new(big.Int).SetString(v.text, 10)
}

// Decimal returns a decimal as coefficient × 10^exponent. The coefficient is a new value
// without zeros at its end; ok is false for other kinds. The exponent of a decimal that
// was read is within ±10,000 (see [Limits]).
func (v Value) Decimal() (coefficient *big.Int, exponent int, ok bool) {
	if v.kind != KindDecimal {
		return nil, 0, false
	}
	coefficient, ok = new(big.Int).SetString(v.text, 10)
	return coefficient, v.exponent(), ok
}
