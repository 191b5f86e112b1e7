// Package form reads data that people and models write (plans, requests,
// configurations) into Go, strictly: whatever is not as it must be is a fault with
// its place, and all faults are found, not only the first. What was not asked for
// is a fault too, so that reading a map is a list of its fields:
//
//	faults := form.Read(value, func(m *form.Map) {
//		m.Need("intent")
//		m.Name("intent", &spec.Intent)
//		m.NameList("candidates", &spec.Candidates)
//		m.Duration("hedge-ms", &spec.Hedge)
//		m.Map("retry", func(m *form.Map) {
//			m.Int("max", &spec.Max, 0, 100)
//		})
//	})
//
// EDN and JSON are read alike, by the rules of package edn: a name is a keyword
// in the one and a string, with or without a colon in front, in the other. A
// string where EDN wants a keyword is a fault, as is a keyword where either wants
// text. A field that is there and nil is a fault like any other wrong value.
//
// A field that is at fault, or is not there, leaves its Go variable as it was.
package form
