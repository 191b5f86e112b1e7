// Package form reads data written by people and models (plans, requests, configurations) into Go variables. It is strict: every
// wrong value is reported as a fault with its position, and all faults are found, not only the first. A field that the reader does
// not request is a fault too, so the code that reads a map is a list of its fields:
//
//	faults := form.Read(value, func(m *form.Map) {
//		m.Need("intent")
//		m.At("intent").Name(&spec.Intent)
//		m.At("candidates").NameList(&spec.Candidates)
//		m.At("hedge-ms").Duration(&spec.Hedge)
//		m.At("retry").Map(func(m *form.Map) {
//			m.At("max").Int(&spec.Max, 0, 100)
//		})
//	})
//
// EDN and JSON are read in the same way, by the rules of package edn: a name is a keyword in EDN, and a string with or without a
// leading colon in JSON. In EDN, a string in place of a keyword is a fault, and so is a keyword in place of text. A field whose
// value is nil is a fault like any other wrong value.
//
// A faulty or missing field leaves its Go variable unchanged.
//
// Readers are functions rather than struct tags. The alternative, conversion to JSON, a schema and a strict decoder, takes 107 µs
// instead of 3.6 µs to read a policy, and accepts 80 of 1,896 faulty policies, because JSON has neither keywords nor sets.
package form
