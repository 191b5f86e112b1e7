package turn

import "testing"

// A turn that was asked again keeps its number, and the name of an agent says nothing about its role.
func TestAddresses(t *testing.T) {
	for path, want := range map[string]string{"mason/turn-7": "mason/tool-7-1", "mason/turn-7@2": "mason/tool-7-1", "a/mason@2/turn-1": "a/mason@2/tool-1-1"} {
		if got := callAt(path, 1); got != want {
			t.Errorf("the first call of %s is %s, want %s", path, got, want)
		}
	}
	l := &Log{Roles: map[string]Role{"tool-shop": Answers, "lead": Answers}}
	l.enter("all/each[2]/tool-shop", "tool-shop")
	l.enter("lead", "lead")
	for path, want := range map[string]Role{"all/each[2]/tool-shop/turn-1": Answers, "lead/turn-1": Answers, "lead/tool-1-2/research/turn-1": Thinks} {
		if got := l.role(path); got != want {
			t.Errorf("the role of %s is %v, want %v", path, got, want)
		}
	}
}
