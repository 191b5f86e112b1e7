package layers

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// licences are the ones that modules of the command may have: they let anybody pass on a
// program without its source, as long as the texts go along. The first phrase that a text
// contains names its licence.
var licences = []struct{ name, phrase string }{
	{"Apache-2.0", `Apache License,? Version 2\.0`},
	{"MIT", `Permission is hereby granted, free of charge, to any person obtaining a copy`},
	{"BSD-3-Clause", `Redistribution and use in source and binary forms.*Neither the names? of`},
	{"BSD-2-Clause", `Redistribution and use in source and binary forms`},
	{"public domain", `dedicated to the public domain`},
}

// demanding finds licences that demand more, which are refused even beside a permitted one.
var demanding = regexp.MustCompile(`(?i)GNU (Lesser |Affero |Library )?General Public|Mozilla Public|Eclipse Public|Server Side Public|` +
	`Business Source|Commons Clause|Elastic License|NonCommercial|Common Development and Distribution`)

// noLicence lists the files that speak of licences and are none.
var noLicence = map[string]string{
	"modernc.org/libc LICENSE-3RD-PARTY.md":   "reprints MIT and BSD texts of the parts of the module",
	"modernc.org/sqlite LICENSE-3RD-PARTY.md": "reprints texts of parts and tools; says that MPL-2.0 is only in a tool that no build links",
	"modernc.org/memory LICENSE-LOGO":         "the address of a picture",
}

// The command is passed on as a binary, so the licence of every module in it counts, on
// each platform.
func TestLicencesOfTheCommand(t *testing.T) {
	dirs := map[string]string{}
	for _, system := range []string{"linux", "darwin", "windows"} {
		cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Dir}}{{end}}{{end}}", module+"/cmd/stone")
		cmd.Env, cmd.Stderr = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"), os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			if path, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
				dirs[path] = dir
			}
		}
	}
	if len(dirs) < 40 {
		t.Fatalf("the command links %d modules: the list is not complete", len(dirs))
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	dirs["std"] = strings.TrimSpace(string(root))
	used := map[string]bool{}
	for path, dir := range dirs {
		t.Run(path, func(t *testing.T) {
			files, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, f := range files {
				if upper := strings.ToUpper(f.Name()); !f.IsDir() && (strings.Contains(upper, "LICENSE") || strings.HasPrefix(upper, "COPYING")) {
					if noLicence[path+" "+f.Name()] != "" {
						used[path+" "+f.Name()] = true
						continue
					}
					text, err := os.ReadFile(filepath.Join(dir, f.Name()))
					if err != nil {
						t.Fatal(err)
					}
					name, fault := licence(string(text))
					if fault != "" {
						t.Errorf("%s: %s", f.Name(), fault)
					}
					found = append(found, name)
				}
			}
			if len(found) == 0 {
				t.Error("no file with a licence")
			}
			t.Logf("%s", strings.Join(slices.Compact(found), ", "))
		})
	}
	for name := range noLicence {
		if !used[name] {
			t.Errorf("%s does not exist any more: remove it from the list", name)
		}
	}
}

// licence returns the name of the permitted licence with this text, or what is wrong.
func licence(text string) (name, fault string) {
	text = strings.Join(strings.Fields(text), " ")
	if bad := demanding.FindString(text); bad != "" {
		return "", "names a licence that is not permitted: " + bad
	}
	for _, l := range licences {
		if regexp.MustCompile(`(?i)` + l.phrase).MatchString(text) {
			return l.name, ""
		}
	}
	return "", "the licence is not one that is permitted: read it, and add it to the table if it may be"
}

func TestLicencesThatAreRefused(t *testing.T) {
	const mit = "Permission is hereby granted, free of charge, to any person\nobtaining a copy of this software"
	for text, want := range map[string]string{
		mit: "MIT",
		"                    GNU GENERAL PUBLIC LICENSE\n Version 3, 29 June 2007": "",
		"GNU AFFERO GENERAL PUBLIC LICENSE":                                        "",
		"GNU Lesser\nGeneral Public License":                                       "",
		"Mozilla Public License Version 2.0":                                       "",
		"Business Source License 1.1":                                              "",
		mit + "\n\"Commons Clause\" License Condition v1.0":                        "",
		"All rights reserved. Do not copy.":                                        "",
	} {
		if name, fault := licence(text); name != want || (fault == "") != (want != "") {
			t.Errorf("%q is %q (%s), want %q", text, name, fault, want)
		}
	}
}
