package tui

import (
	"fmt"
	"maps"
	"strings"

	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/internal/progress"
	"github.com/stonelayer/stone/internal/view"
)

// report shows a server's report about a call. It replaces the previous report.
func (t *transcript) report(r reported) {
	s := t.at(r.path, 0)
	s.from = r.path
	line := []byte("… " + oneLine(r.message))
	if s.news == nil || s.news.gone {
		s.open = nil
		s.news = t.says(r.path, s, &block{style: dim, short: true, text: line})
		return
	}
	t.size -= len(s.news.text)
	s.news.text = nil
	t.extend(s.news, line)
}

// verdict shows how a call ended. No more text from its attempts follows.
func (t *transcript) verdict(v verdict) {
	maps.DeleteFunc(t.speakers, func(path string, _ *speaker) bool { return address.Within(path, v.path) })
	mark, style := view.Done, dim
	parts := []string{v.cap, progress.Duration(v.elapsed)}
	if v.failure != "" {
		mark, style = view.Failed, yellow
		parts = append([]string{v.failure}, parts...)
	}
	if v.attempts > 1 {
		parts = append(parts, fmt.Sprintf("%d attempts", v.attempts))
	}
	if n := v.usage.Tokens(); n > 0 {
		parts = append(parts, count(n)+" tokens")
	}
	if cost := money.USD(v.usage.USD, v.usage.Estimated); cost != "" {
		parts = append(parts, cost+" USD")
	}
	line := strings.TrimSpace(strings.Join(parts, "  "))
	t.says(v.path, &speaker{}, &block{style: style, short: true, text: fmt.Appendf(nil, "%s %s", view.Mark(string(mark)), oneLine(line))})
}
