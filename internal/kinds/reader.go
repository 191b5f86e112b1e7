package kinds

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/marked"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/internal/regular"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/sandbox"
	"github.com/stonelayer/stone/schema"
)

// A Reader reads the fields that several kinds share.
type Reader struct {
	Dir      string                              // relative paths start here
	Schema   func(string) (*schema.Schema, bool) // by its name
	Intents  map[string]call.Intent              // that are configured
	Secrets  []Secret                            // named by the current capability
	Parts    map[string]any                      // results of ReadSection
	Closers  []func() error                      // end what capabilities start
	Logins   map[string]Login                    // by the name of the server
	Places   []Place                             // outside the configuration
	Contacts []Contact                           // whose lines replace those of their places
	of       string                              // whose fields are read
	Indexes  []string                            // the files that Index has read
	Argvs    []Argv                              // all that Argv has read
	Passed   []string                            // the variables that Env has read
	Files    []string                            // whose contents are a part of the configuration
	Found    bool                                // the command found the configuration itself
	Search   Search
	Policy   marked.Policy // of the section marks, nil for none
	IDs      []string      // of all capabilities
	// Applicator makes the calls of capabilities. Its Registry has the capabilities built so far.
	Applicator *call.Applicator
	Rerankers  []Named
}

// Named is the field that names a capability.
type Named struct {
	form.Value
	ID string
}

// A Search is the section search of a configuration.
type Search struct {
	Index           string       // the file of the index, also without the section, or the address of a database
	Size, Overlap   int          // as in retrieve.Index
	Rerank          string       // the capability that orders passages, "" for none
	Embedder        llm.Embedder // nil compares words alone
	Provider, Model string       // of the embedder
	Secrets         []Secret     // of the embedder
}

// A Login logs the user in to a server. It calls show with the address to open in a browser.
type Login func(ctx context.Context, show func(address string) error) error

// NoSecret explains where to keep secrets.
const NoSecret = `keep a secret in a variable such as OPENAI_API_KEY, or in a file, and name its place: {:env "NAME"} or {:file "path"}`

// Outs ranges over the schemas that every answer of a capability must match, by their names: its own schema, and the schemas of
// its intents.
func (r *Reader) Outs(m call.Metadata) iter.Seq2[string, *schema.Schema] {
	return func(yield func(string, *schema.Schema) bool) {
		names := []string{m.Out}
		for _, intent := range m.Intents {
			names = append(names, r.Intents[intent].Out)
		}
		for _, name := range names {
			if s, ok := r.Schema(name); ok && s != nil && !yield(name, s) {
				return
			}
		}
	}
}

// Text reads a field as text: as it is, or as {:file "path"}.
func (r *Reader) Text(m *form.Map, key string, to *string) {
	if v, ok := m.Field(key); ok {
		*to = r.TextOf(v)
	}
}

// TextOf reads a value as Text reads a field.
func (r *Reader) TextOf(v form.Value) (text string) {
	if file, isFile := r.OnlyFile(v); isFile {
		data, _ := r.ReadFile(v, file) // its error is reported
		return string(data)
	}
	v.Text(&text)
	return text
}

// OnlyFile reports whether a value is {:file "path"}.
func (r *Reader) OnlyFile(v form.Value) (file string, ok bool) {
	f, ok := v.EDN().Field("file")
	if !ok || v.EDN().Len() != 1 || f.Kind() != edn.KindString {
		return "", false
	}
	return Within(r.Dir, f.Text()), true
}

// Path reads a field as the path of a file or directory.
func (r *Reader) Path(m *form.Map, key string, to *string) {
	var path string
	SomeText(m, key, &path)
	if path != "" {
		*to = Within(r.Dir, path)
		r.reachFile(m.At(key), *to)
	}
}

// IndexEnv is the variable that names the index that commands use. It may contain the password of a configured index.
const IndexEnv = "STONE_INDEX"

// Index reads the field index: the path of a file, or the address of a database. Its faults do not show the address.
func (r *Reader) Index(m *form.Map, to *string) {
	v, ok := m.Field("index")
	switch address := v.EDN(); {
	case !ok:
	case address.Kind() != edn.KindString || !redact.IsDatabase(address.Text()):
		if r.Path(m, "index", to); *to != "" {
			r.Reach(v, "keeps documents in", Shown(*to))
			r.Indexes = append(r.Indexes, *to)
		}
	case redact.HasPassword(address.Text()):
		v.Fault(form.Invalid, "expected an address without a password: set %s to the address with it", IndexEnv)
	default:
		*to = address.Text()
		r.Reach(v, "sends documents and questions to", Host(*to))
	}
}

// Reranker reads the field rerank, which names a capability that orders passages.
func (r *Reader) Reranker(m *form.Map, to *string) {
	if v, ok := m.Field("rerank"); ok && v.Name(to) {
		CheckEach(v, "capability", r.IDs)
		r.Rerankers = append(r.Rerankers, Named{v, *to})
	}
}

// An Argv is a program with its arguments.
type Argv struct {
	Words []string
	Dir   string // where it runs
}

// Argv reads the field command: the path of a program, and its arguments. The program runs in dir; "" means the project's
// directory.
func (r *Reader) Argv(m *form.Map, dir string) (argv []string) {
	v := m.At("command")
	var line string
	if v.EDN().Kind() == edn.KindString && v.Text(&line) {
		v.Fault(form.Invalid, "expected a vector of the program and its arguments, such as [\"/usr/bin/wc\" \"-w\"], found the string %q", line)
		return nil
	}
	switch v.Texts(&argv); {
	case argv == nil:
	case len(argv) == 0 || argv[0] == "":
		v.Fault(form.Invalid, "expected a program, such as [\"/usr/bin/wc\" \"-w\"]")
	case !slices.Contains([]byte(argv[0]), os.PathSeparator):
		v.Fault(form.Invalid, "expected the path of a program, such as \"/usr/bin/%s\" or \"./%[1]s\", found %[1]q", argv[0])
	default:
		argv[0] = Within(r.Dir, argv[0])
		r.Argvs = append(r.Argvs, Argv{argv, cmp.Or(dir, r.Dir)})
		r.Reach(v, "starts the program", Whole(argv))
	}
	return argv
}

// Env reads the field env: the names of variables that a program is given.
func (r *Reader) Env(m *form.Map) (names []string) {
	v := m.At("env")
	v.Texts(&names)
	for _, name := range names { // not listed elsewhere
		r.Places = append(r.Places, Place{In: v.Path(), Does: "passes on the variable", At: "$" + name})
	}
	r.Passed = append(r.Passed, names...)
	return names
}

// Scope reads the field scope.
func (r *Reader) Scope(m *form.Map) (s call.Scope) {
	m.At("scope").Map(func(m *form.Map) {
		m.At("fs").Texts((*[]string)(&s.FS))
		m.At("process").Texts((*[]string)(&s.Process))
		m.At("net").Texts((*[]string)(&s.Net))
	})
	for _, paths := range [][]string{s.FS, s.Process} {
		for i, p := range paths {
			paths[i] = Within(r.Dir, p)
		}
	}
	return s
}

// SomeText reads a field as a string that is not empty.
func SomeText(m *form.Map, key string, to *string) {
	if m.At(key).Text(to) && *to == "" {
		m.FaultAt(key, form.Invalid, "expected a non-empty string")
	}
}

// Address reads a field as the address of a server. Its faults do not show the address,
// which may contain a secret.
func (r *Reader) Address(m *form.Map, key string, to *string) {
	v, ok := m.Field(key)
	if !ok {
		return
	}
	u, err := url.Parse(v.EDN().Text())
	switch {
	case v.EDN().Kind() != edn.KindString || err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		v.Fault(form.Invalid, "expected an address, such as \"http://localhost:8000\"")
	case u.User != nil || u.RawQuery != "":
		v.Fault(form.Invalid, "expected an address without user and query: %s", NoSecret)
	default:
		*to = v.EDN().Text()
		r.Reach(v, "sends requests to", Host(*to))
	}
}

// CheckEach reports unknown names in a field with one or more names.
func CheckEach(field form.Value, what string, known []string) {
	names := []edn.Value{field.EDN()}
	if k := names[0].Kind(); k == edn.KindVector || k == edn.KindSet {
		names = names[:0]
		for _, v := range field.EDN().Elements() {
			names = append(names, v)
		}
	}
	for _, v := range names {
		if name, ok := v.Name(); ok && !slices.Contains(known, name) {
			field.Unknown(what, name, known...)
		}
	}
}

// Within resolves the path of a file against a directory. An absolute path is returned
// unchanged.
func Within(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// Shown returns a path relative to the working directory, if it is below that.
func Shown(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// ReadFile reads a file that a value names.
func (r *Reader) ReadFile(v form.Value, file string) ([]byte, bool) {
	data, err := regular.Read(file, regular.Config)
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		err = e.Err
	}
	if err != nil {
		v.Fault(form.Invalid, "%s: %v", Shown(file), err)
	}
	r.Files = append(r.Files, file)
	r.reachFile(v, file)
	return data, err == nil
}

// Sandbox reads the field sandbox: what a program may use.
func (r *Reader) Sandbox(m *form.Map) (p sandbox.Policy) {
	m.At("sandbox").Map(func(m *form.Map) {
		m.At("writable").Texts(&p.Writable)
		m.At("read-only").Texts(&p.ReadOnly)
		m.At("network").Bool(&p.Network)
		if m.At("loopback").Bool(&p.Loopback); p.Loopback && !p.Network {
			m.FaultAt("loopback", form.Invalid, "loopback belongs to a network: add :network true")
		}
		var unconfined bool
		if m.At("unconfined").Bool(&unconfined); unconfined {
			p.Method = sandbox.Unconfined
			if len(p.Writable)+len(p.ReadOnly) > 0 || p.Network || p.Loopback {
				m.Fault(form.Invalid, "an unconfined program may use everything: leave the other fields out")
			}
		}
	})
	for _, paths := range [][]string{p.Writable, p.ReadOnly} {
		for i, path := range paths {
			paths[i] = Within(r.Dir, path)
		}
	}
	return p
}
