// Package harness provides coding agents as capabilities. A coding agent is a program that speaks the Agent Client Protocol and
// edits a git repository, such as Claude Code, Codex, Gemini CLI or stone acp.
//
// Each call clones the repository into a temporary directory and runs the program there, in a sandbox. The prompt is the field
// "prompt" of the input or, if there is no such field, a line with the intent followed by the whole input as JSON. The answer
// contains the text that the program has sent and its edits, as a diff for git apply:
//
//	{"text": "…", "base": "4f0c…", "diff": "diff --git a/…", "tests": {"passed": true, "output": "…"}}
//
// The diff applies to the commit base. The field "tests" contains the result of Config.Test; the check tests-pass rejects an
// answer whose tests failed. If the call repairs a rejected answer, the program starts from its earlier edits, and the prompt
// states why they were rejected.
//
// # People
//
// When the program asks for permission, the run asks a question. If the run has no frontend, the program is stopped while the run
// waits for the answer. Afterwards the program is started again, and receives the recorded answer when it asks the same question.
//
// # Reach
//
// The program can write to its clone, and can read and write what Config.Sandbox permits. It cannot write to .git, so it cannot
// commit. The protocol's file requests reach only the clone, and terminals are not offered. When the context is done, the turn is
// cancelled, and the program is stopped with all its child processes.
package harness
