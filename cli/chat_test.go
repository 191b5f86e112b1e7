//go:build unix

package cli_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/tool"
)

func init() {
	programs["talks"] = talks
	programs["forgets"] = forgets
	programs["fans"] = func() stone.Ashlar { return stone.Parallel("fans", talks()) }
	programs["needs"] = needs
	programs["counts"] = counts
}

type messageDoc struct {
	Text string `json:"text"`
}

var (
	message  = dag.NewType[messageDoc]("message")
	response = dag.NewType[agent.Text]("response")
)

// talks is an agent that chats. It writes each request to the file "log", and answers with
// what it was told so far.
func talks() stone.Ashlar {
	save := tool.Func("save", "Saves a text.", func(_ context.Context, in messageDoc) (string, error) {
		return "saved " + in.Text, nil
	})
	model := script.Func(func(_ int, req *llm.Request) script.Answer {
		last := req.Messages[len(req.Messages)-1]
		var said []string
		for _, m := range req.Messages {
			if m.Role == llm.RoleUser {
				said = append(said, m.Text())
			}
		}
		text := last.Text()
		appendLine("log", fmt.Sprintf("%s: %s", last.Role, text))
		answer := script.Text("You said: " + strings.Join(said, ", ") + ".")
		switch {
		case last.Role != llm.RoleUser:
		case strings.HasPrefix(text, "save "):
			answer = script.Call("save", fmt.Sprintf(`{"text":%q}`, strings.TrimPrefix(text, "save ")))
		case text == "fail" && !exists("works"):
			answer = script.Fail(fmt.Errorf("the model is away"))
		case text == "wait" && !exists("go"):
			appendLine("started", "")
			answer.Wait = time.Minute
		}
		return answer
	})
	return agent.New("talks", response, model, agent.Config{
		Conversation: agent.ConversationOf(response),
		User:         agent.Prompt(message, func(m messageDoc) string { return m.Text }),
		Use:          []agent.Middleware{tool.Confirm(save, tool.Ask)},
	})
}

func exists(file string) bool { _, err := os.Stat(file); return err == nil }

func appendLine(file, line string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, line); err != nil {
		panic(err)
	}
}

func forgets() stone.Ashlar {
	return agent.New("forgets", response, script.New(), agent.Config{
		User: agent.Prompt(message, func(m messageDoc) string { return m.Text }),
	})
}

// needs reads two types that nothing produces.
func needs() stone.Ashlar {
	return stone.Func2("needs", message, word, sum, func(context.Context, messageDoc, string) (int, error) { return 1, nil })
}

// counts remembers its messages, which are strings, without an agent.
func counts() stone.Ashlar {
	return stone.Func("counts", dag.All(word), sum, func(_ context.Context, all []string) (int, error) { return len(all), nil })
}
