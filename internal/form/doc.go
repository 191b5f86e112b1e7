// Package form reads data that people and models write (plans, requests, configurations) into Go, strictly: every wrong value is
// a fault with its place, and all faults are found, not only the first. A field that the reader does not request is a fault too,
// so reading a map is a list of its fields:
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
// EDN and JSON are read alike, by the rules of package edn: a name is a keyword
// in EDN, and in JSON a string with or without a leading colon. A string where EDN
// wants a keyword is a fault, as is a keyword where either wants text. A field
// whose value is nil is a fault like any other wrong value.
//
// A faulty or missing field leaves its Go variable unchanged.
//
// Readers are functions, not struct tags. With JSON, a schema and a strict decoder, reading a policy takes 107 µs instead of 3.6,
// and 80 of 1,896 faulty policies pass, because JSON has neither keywords nor sets.
package form
