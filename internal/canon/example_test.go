package canon_test

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/stonelayer/stone/internal/canon"
)

func Example() {
	type patch struct {
		File  string `json:"file"`
		Added int64  `json:"added"`
	}
	e, err := canon.For(reflect.TypeFor[patch]())
	if err != nil {
		fmt.Println(err)
		return
	}
	p := patch{File: "main.go", Added: 1<<53 + 1}
	text, err := e.Append(nil, unsafe.Pointer(&p))
	fmt.Println(string(text), err, e.Flat())

	// The same content as text from outside has the same identity.
	outside, err := canon.AppendJSON(nil, []byte(`{ "file": "main\u002ego", "added": 9007199254740993 }`))
	fmt.Println(sha256.Sum256(outside) == sha256.Sum256(text), err)

	_, err = canon.AppendJSON(nil, []byte(`{"items":[{"price":1e400}]}`))
	fmt.Println(err)
	// Output:
	// {"added":9007199254740993,"file":"main.go"} <nil> true
	// true <nil>
	// cannot be canonical JSON: items[0].price: 1e400 is beyond the range of a float64: write it as a string
}
