package layers

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var release = flag.String("release", "", "write the exported API into testdata/api/`VERSION`.txt")

// Every line of the last release's API is still in the API, unless testdata/api/breaks.txt has it: what a program could use then,
// it can use now. CHANGELOG.md says what to write instead of a line there.
func TestAPI(t *testing.T) {
	now := api(t)
	if *release != "" {
		if err := os.WriteFile(filepath.Join("testdata/api", *release+".txt"), []byte(strings.Join(now, "\n")+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob("testdata/api/[0-9]*.txt")
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v: want the API of the last release alone", files, err)
	}
	last, declared := lines(t, files[0]), lines(t, "testdata/api/breaks.txt")
	gone, stale := broken(last, now, declared)
	for _, line := range gone {
		t.Errorf("%s has %q, which is gone or changed: keep it, or declare the break in testdata/api/breaks.txt and CHANGELOG.md", files[0], line)
	}
	for _, line := range stale {
		t.Errorf("testdata/api/breaks.txt has %q, which is no break: remove the line", line)
	}
}

// broken returns the lines of the last API that are gone and not declared, and the declared ones that are
// not gone.
func broken(last, now, declared []string) (gone, stale []string) {
	for _, line := range last {
		if !slices.Contains(now, line) && !slices.Contains(declared, line) {
			gone = append(gone, line)
		}
	}
	for _, line := range declared {
		if slices.Contains(now, line) || !slices.Contains(last, line) {
			stale = append(stale, line)
		}
	}
	return gone, stale
}

func TestBroken(t *testing.T) {
	last := []string{"kept", "gone", "declared"}
	gone, stale := broken(last, []string{"kept", "new"}, []string{"declared", "kept", "never"})
	if got := strings.Join(gone, " ") + "|" + strings.Join(stale, " "); got != "gone|kept never" {
		t.Errorf("broken = %q", got)
	}
}

func lines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool { return line == "" || line[0] == '#' })
}

// api returns the exported API of all public packages, sorted.
func api(t *testing.T) []string {
	t.Helper()
	var errs bytes.Buffer
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Name,Export", module+"/...")
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.Bytes())
	}
	exports := map[string]string{}
	var public []string
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Name, Export string }
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if isPublic(p.ImportPath, p.Name) {
			public = append(public, p.ImportPath)
		}
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var all []string
	for _, path := range public {
		p, err := from.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
		if name == "" {
			name = "."
		}
		for _, line := range apiOf(p) {
			if strings.Contains(line, "internal/") { // programs can pass such a value on, and not name its type
				words := strings.Fields(line)
				if words[0] != "var" {
					continue
				}
				line = strings.Join(words[:2], " ")
			}
			all = append(all, name+": "+line)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func isPublic(path, name string) bool {
	return (path == module || strings.HasPrefix(path, module+"/")) && name != "main" &&
		!slices.Contains(strings.Split(path, "/"), "internal") && !strings.Contains(path, "/examples")
}

func apiOf(p *types.Package) (lines []string) {
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		switch o := o.(type) {
		case *types.Const:
			lines = append(lines, "const "+name+" "+typeText(o.Type()))
		case *types.Var:
			lines = append(lines, "var "+name+" "+typeText(o.Type()))
		case *types.Func:
			s := o.Signature()
			lines = append(lines, "func "+name+params(s.TypeParams())+signature(s))
		case *types.TypeName:
			lines = append(lines, apiOfType(o)...)
		}
	}
	return lines
}

func apiOfType(o *types.TypeName) (lines []string) {
	if o.IsAlias() {
		if target := types.Unalias(o.Type()); !strings.HasPrefix(typeText(target), "internal/") {
			return []string{"type " + o.Name() + " = " + typeText(target)}
		}
		return []string{"type " + o.Name()}
	}
	named, ok := o.Type().(*types.Named)
	if !ok {
		return []string{"type " + o.Name() + " " + typeText(o.Type())}
	}
	head := "type " + o.Name() + params(named.TypeParams()) + " "
	switch u := named.Underlying().(type) {
	case *types.Struct:
		lines = append(lines, head+"struct")
		for i := range u.NumFields() {
			if f := u.Field(i); f.Exported() {
				lines = append(lines, head+"struct, "+f.Name()+" "+typeText(f.Type()))
			}
		}
	case *types.Interface:
		return append(lines, head+interfaceText(u))
	default:
		lines = append(lines, head+typeText(u))
	}
	methods := types.NewMethodSet(types.NewPointer(named))
	for i := range methods.Len() {
		if m := methods.At(i).Obj().(*types.Func); m.Exported() {
			lines = append(lines, "method (*"+o.Name()+") "+m.Name()+signature(m.Signature()))
		}
	}
	return lines
}

// interfaceText has all methods in one line: who implements the interface needs each of them.
func interfaceText(u *types.Interface) string {
	var methods []string
	for i := range u.NumMethods() {
		m := u.Method(i)
		methods = append(methods, m.Name()+signature(m.Signature()))
	}
	for i := range u.NumEmbeddeds() {
		if e := u.EmbeddedType(i); !types.IsInterface(e) || u.NumMethods() == 0 {
			methods = append(methods, typeText(e))
		}
	}
	slices.Sort(methods)
	return "interface { " + strings.Join(methods, "; ") + " }"
}

func params(list *types.TypeParamList) string {
	if list.Len() == 0 {
		return ""
	}
	var all []string
	for i := range list.Len() {
		all = append(all, list.At(i).Obj().Name()+" "+typeText(list.At(i).Constraint()))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// signature has no names of parameters, which callers do not depend on.
func signature(s *types.Signature) string {
	tuple := func(list *types.Tuple, variadic bool) string {
		var all []string
		for i := range list.Len() {
			text := typeText(list.At(i).Type())
			if variadic && i == list.Len()-1 {
				text = "..." + strings.TrimPrefix(text, "[]")
			}
			all = append(all, text)
		}
		return strings.Join(all, ", ")
	}
	text := "(" + tuple(s.Params(), s.Variadic()) + ")"
	if s.Results().Len() > 0 {
		text += " (" + tuple(s.Results(), false) + ")"
	}
	return text
}

func typeText(t types.Type) string {
	switch t := t.(type) {
	case *types.Signature:
		return "func" + signature(t)
	case *types.Pointer:
		return "*" + typeText(t.Elem())
	case *types.Slice:
		return "[]" + typeText(t.Elem())
	case *types.Map:
		return "map[" + typeText(t.Key()) + "]" + typeText(t.Elem())
	case *types.Chan:
		return fmt.Sprint([]string{"chan ", "chan<- ", "<-chan "}[t.Dir()], typeText(t.Elem()))
	}
	return types.TypeString(t, func(p *types.Package) string {
		if p.Path() == module {
			return "stone"
		}
		return strings.TrimPrefix(p.Path(), module+"/")
	})
}
