package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// source is the part of the output of `go list` that names a package's directory and files.
type source struct {
	Dir, ImportPath                                 string
	Standard                                        bool
	GoFiles, CgoFiles, CFiles, CXXFiles, MFiles     []string
	HFiles, FFiles, SFiles, SwigFiles, SwigCXXFiles []string
	SysoFiles, EmbedFiles                           []string
	Module                                          *struct{ GoMod string }
}

// Sources returns the files that a build of the packages compiles or embeds, except files in the module cache: files in the
// user's modules, in replaced modules and in a vendor directory, and the module and workspace files. Package names are relative
// to dir. Sources does not use the network or run code from the packages. If a package contains files with dependencies unknown
// to Go, it returns the files and an *Opaque.
func Sources(ctx context.Context, dir string, packages ...string) ([]string, error) {
	tool := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOPROXY=off", "GOSUMDB=off")
		out, err := cmd.Output()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = errors.New(firstLine(string(exit.Stderr), err))
		}
		if err != nil {
			return nil, fmt.Errorf("cannot list the source files of %s: %w", dir, err)
		}
		return out, nil
	}
	out, err := tool("env", "-json", "GOMODCACHE", "GOWORK")
	if err != nil {
		return nil, err
	}
	var env struct{ GOMODCACHE, GOWORK string }
	if err := json.Unmarshal(out, &env); err != nil {
		return nil, err
	}
	var all []string
	if env.GOWORK != "" && env.GOWORK != "off" {
		all = append(all, env.GOWORK, strings.TrimSuffix(env.GOWORK, ".work")+".work.sum")
	}
	if out, err = tool(append([]string{"list", "-e", "-deps", "-mod=readonly", "-json"}, packages...)...); err != nil {
		return nil, err
	}
	var opaque error
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var s source
		if err := dec.Decode(&s); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if !s.Standard && !within(s.Dir, env.GOMODCACHE) {
			all = append(all, s.files()...)
			foreign := slices.Concat(s.CgoFiles, s.CFiles, s.CXXFiles, s.MFiles, s.FFiles, s.SFiles, s.SwigFiles, s.SwigCXXFiles)
			if opaque == nil && len(foreign) > 0 {
				opaque = &Opaque{s.ImportPath}
			}
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(file string) bool {
		_, err := os.Lstat(file)
		return errors.Is(err, fs.ErrNotExist)
	}), opaque
}

// Opaque is the error for a package with files for a C compiler or an assembler, because these can include and link any other
// files.
type Opaque struct{ Package string }

func (o *Opaque) Error() string {
	return fmt.Sprintf("the package %s has C or assembly files, which may include and link any other file, so trust cannot cover it", o.Package)
}

func (s source) files() (all []string) {
	for _, names := range [][]string{s.GoFiles, s.CgoFiles, s.CFiles, s.CXXFiles, s.MFiles, s.HFiles, s.FFiles, s.SFiles, s.SwigFiles, s.SwigCXXFiles, s.SysoFiles, s.EmbedFiles} {
		for _, name := range names {
			all = append(all, filepath.Join(s.Dir, name))
		}
	}
	if s.Module != nil && s.Module.GoMod != "" {
		mod := filepath.Dir(s.Module.GoMod)
		all = append(all, s.Module.GoMod, filepath.Join(mod, "go.sum"), filepath.Join(mod, "vendor", "modules.txt"))
	}
	return all
}

func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return dir != "" && err == nil && filepath.IsLocal(rel)
}
