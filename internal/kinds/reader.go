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

// A Reader reads the configuration fields that several kinds share.
type Reader struct {
	Dir      string                              // directory that relative paths start from
	Schema   func(string) (*schema.Schema, bool) // returns the schema with the given name
	Intents  map[string]call.Intent              // configured intents
	Secrets  []Secret                            // secrets that the current capability refers to
	Parts    map[string]any                      // results of ReadSection, by section
	Closers  []func() error                      // functions that stop what capabilities have started
	Logins   map[string]Login                    // logins, by name of the server
	Places   []Place                             // places outside the configuration
	Contacts []Contact                           // addresses that receive data; they replace Places with the same address
	of       string                              // name of the part whose fields are being read; see Of
	Indexes  []string                            // indexes that Index has read
	Argvs    []Argv                              // commands that Argv has read
	Passed   []string                            // variables that Env has read
	Files    []string                            // files whose contents are a part of the configuration
	Found    bool                                // whether the command found the configuration itself
	Search   Search
	Policy   marked.Policy // policy of the marks section; nil if there is none
	IDs      []string      // IDs of all capabilities
	// Applicator is the Applicator for capabilities that make calls. Its Registry contains the capabilities that have already
	// been built.
	Applicator *call.Applicator
	Rerankers  []Named
}

// A Named records a field that refers to a capability by name.
type Named struct {
	form.Value
	ID string
}

// A Search holds the settings in the section "search" of a configuration.
type Search struct {
	Index           string       // file of the index, or address of a database; also set without the section
	Size, Overlap   int          // see retrieve.Index
	Rerank          string       // capability that sorts passages; "" for none
	Embedder        llm.Embedder // if nil, only words are compared
	Provider, Model string       // provider and model of the embedder
	Secrets         []Secret     // secrets of the embedder
}

// A Login is a function that logs the user in to a server. It calls show with the URL that the user must open in a browser.
type Login func(ctx context.Context, show func(address string) error) error

// NoSecret is a message that explains where to keep secrets.
const NoSecret = `keep a secret in a variable such as OPENAI_API_KEY, or in a file, and name its place: {:env "NAME"} or {:file "path"}`

// Outs returns an iterator over the schemas that every answer of a capability must match, with their names: the capability's own
// schema and the schemas of its intents.
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

// Text sets *to to the text of a field. The field contains the text itself or {:file "path"}.
func (r *Reader) Text(m *form.Map, key string, to *string) {
	if v, ok := m.Field(key); ok {
		*to = r.TextOf(v)
	}
}

// TextOf is like Text, but reads the value v and returns the text.
func (r *Reader) TextOf(v form.Value) (text string) {
	if file, isFile := r.OnlyFile(v); isFile {
		data, _ := r.ReadFile(v, file) // ReadFile has recorded the error
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

// IndexEnv is the environment variable in which commands find the address of the index. It may contain the password of a
// configured index.
const IndexEnv = "STONE_INDEX"

// Index reads the field "index": the path of a file or the address of a database. Faults do not show the address.
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

// Reranker reads the field "rerank", which names a capability that sorts passages.
func (r *Reader) Reranker(m *form.Map, to *string) {
	if v, ok := m.Field("rerank"); ok && v.Name(to) {
		CheckEach(v, "capability", r.IDs)
		r.Rerankers = append(r.Rerankers, Named{v, *to})
	}
}

// An Argv is a program and its arguments.
type Argv struct {
	Words []string
	Dir   string // working directory
}

// Argv reads the field "command": the path of a program and its arguments. The program's working directory is dir; "" means the
// project's directory.
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

// Env reads the field "env": the names of environment variables that are passed to a program.
func (r *Reader) Env(m *form.Map) (names []string) {
	v := m.At("env")
	v.Texts(&names)
	for _, name := range names { // these are not recorded elsewhere
		r.Places = append(r.Places, Place{In: v.Path(), Does: "passes on the variable", At: "$" + name})
	}
	r.Passed = append(r.Passed, names...)
	return names
}

// Scope reads the field "scope", which limits what a capability can reach.
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

// Address reads a field as the address of a server. Faults do not show the address, because it may contain a secret.
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

// CheckEach records a fault for each unknown name in a field that contains one or more names.
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

// Within returns path joined to a directory if path is relative, and path itself if it is absolute.
func Within(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// Shown returns a path relative to the working directory if the path is below it, and the path itself otherwise.
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

// ReadFile returns the content of a file to which the value v refers. If the file cannot be read, it records a fault.
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

// Sandbox reads the field "sandbox", which says what a program may access.
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
