package puzzle

import (
	"strings"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

// models are scripted. Replace always by openai.New or anthropic.New to ask
// real ones; nothing else changes.
func models(app *call.Applicator) []call.Capability {
	speaker := func(id, intent, out, prompt string, m llm.Model) call.Capability {
		return model.New(call.Metadata{ID: id, Intents: []string{intent}, Out: out},
			model.Config{Model: m, Prompt: prompt, Schema: app.Schema})
	}
	const (
		solve   = "Solve the sudoku: replace every dot."
		colour  = "Give each state a colour of the palette, so that no border is between two states of one colour."
		caption = "Write one line to stand below the map."
		grade   = "Grade the caption of a map from 0 to 1: it should say what is seen."
	)
	return []call.Capability{
		speaker("model/sure", "sudoku/solve", "grid", solve, always(sureOfSudoku)),
		speaker("model/bold", "map/colour", "colouring", colour, always(sureOfColours)),
		speaker("model/diligent", "map/colour", "colouring", colour, script.Func(diligent)),
		speaker("model/vain", "map/caption", call.TextAnswer, caption, always("Behold my finest map!")),
		speaker("model/plain", "map/caption", call.TextAnswer, caption, always("Seven states in three colours, no two neighbours alike.")),
		speaker("judge/critic", call.EvalGrade, call.EvalAnswer, grade, script.Func(critic)),
	}
}

func always(text string) llm.Model {
	return script.Func(func(int, *llm.Request) script.Answer { return script.Text(text) })
}

// Two digits of the first row have changed places. The row is fine.
const sureOfSudoku = "Easy! This is the only solution:\n```json\n" + `{"rows": [
"534678921", "672195348", "198342567", "859761423", "426853791", "713924856", "961537284", "287419635", "345286179"]}` + "\n```\n"

const sureOfColours = "I have checked this twice:\n```json\n" + `{"colours": {
"Western Australia": "red", "Northern Territory": "blue", "South Australia": "green", "Queensland": "blue",
"New South Wales": "red", "Victoria": "green", "Tasmania": "blue"}}` + "\n```\n"

// diligent forgets one border, and repairs its answer when told.
func diligent(_ int, req *llm.Request) script.Answer {
	victoria := "green"
	if asked := req.Messages[len(req.Messages)-1].Text(); strings.Contains(asked, "New South Wales and Victoria are both green") {
		victoria = "red"
	}
	return script.JSON(Colouring{map[string]string{
		"Western Australia": "red", "Northern Territory": "green", "South Australia": "blue", "Queensland": "red",
		"New South Wales": "green", "Victoria": victoria, "Tasmania": "red",
	}})
}

// critic likes captions that say something about the map.
func critic(_ int, req *llm.Request) script.Answer {
	if strings.Contains(req.Messages[len(req.Messages)-1].Text(), "three colours") {
		return script.Text(`{"score": 0.9, "reason": "it says what is seen"}`)
	}
	return script.Text(`{"score": 0.2, "reason": "it speaks of its author"}`)
}
