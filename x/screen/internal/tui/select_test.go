package tui

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/stonelayer/stone/event"
)

// A step that is selected in the tree shows its conversation and its failures alone, and ? lists the keys.
func TestSelect(t *testing.T) {
	m := still(t, 100, 24)
	m.take(&piece{path: "fix-package/read-issue", turn: 1, from: "fix-package/read-issue", kind: event.Text, text: []byte("the issue is read")})
	m.take(&piece{path: "fix-package/until-green[0]/try/fix", turn: 1, from: "fix-package/until-green[0]/try/fix", kind: event.Text, text: []byte("the package is mended")})
	m.take(failed{kind: "broken", path: "fix-package/until-green[0]/try/fix", reason: "no compiler"})
	press := func(keys ...string) string {
		for _, k := range keys {
			m.Update(tea.KeyPressMsg{Text: k, Code: rune(k[0])})
		}
		return sgr.ReplaceAllString(m.View().Content, "")
	}
	want := func(screen string, has, not []string) {
		t.Helper()
		for _, s := range has {
			if !strings.Contains(screen, s) {
				t.Errorf("the screen has no %q:\n%s", s, screen)
			}
		}
		for _, s := range not {
			if strings.Contains(screen, s) {
				t.Errorf("the screen has %q:\n%s", s, screen)
			}
		}
	}
	all := []string{"the issue is read", "the package is mended", "no compiler"}
	want(press(), all, []string{"›"})
	want(press("j"), append([]string{"› "}, all...), nil) // the whole pipeline
	want(press("j"), all[:1], all[1:])                    // read-issue
	want(press("j"), all[1:], all[:1])                    // until-green, with what is below it
	want(press("k", "j", "j", "j"), all[1:], all[:1])
	m.Update(tea.KeyPressMsg{Code: tea.KeyEscape})
	want(press(), all, []string{"›"})
	want(press("?"), []string{"next and previous step"}, all)
	want(press("?"), all, nil)
	want(press("l"), all, nil) // a program without runs
	m.cfg.Runs = func(columns int) []string { return []string{"RUN", fmt.Sprint("first in ", columns)} }
	want(press("l"), []string{"first in 100"}, all)
	want(press("?"), all, []string{"first in 100"})
	for _, size := range [][2]int{{100, 24}, {60, 24}, {60, 3}, {20, 1}} {
		m.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		if lines := strings.Count(press("l"), "\n") + 1; lines > size[1] {
			t.Errorf("%d lines on a terminal of %d", lines, size[1])
		}
		press("l")
	}
}
