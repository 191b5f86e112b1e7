package cascade

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// The two models, as the data names them.
const (
	small = "mixtral-8x7b-instruct-v0.1"
	large = "gpt-4-1106-preview"
)

// Question is the prompt for a model, with its id. The pipeline knows nothing else of it.
type Question struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// exam is a file of recorded answers. The pipeline sees the questions; the texts of
// the answers are for the server that replays them, and their correctness for the score.
type exam struct {
	questions []Question
	byText    map[string]answers // by the text of the question
	byID      map[string]answers
}

// answers are those to one question, by the model.
type answers map[string]recorded

type recorded struct {
	Text    string
	Correct bool
}

// readExam reads JSON Lines, one question a line:
//
//	{"id": …, "question": …, "responses": {MODEL: {"text": …, "correct": …}, …}}
func readExam(file string) (*exam, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	e := &exam{byText: map[string]answers{}, byID: map[string]answers{}}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		if err := e.add(lines.Bytes()); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(e.questions) == 0 {
		return nil, fmt.Errorf("%s has no questions: want one JSON object a line", file)
	}
	return e, nil
}

func (e *exam) add(line []byte) error {
	var row struct {
		ID, Question string
		Responses    answers
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return fmt.Errorf("want a JSON object with id, question and responses: %w", err)
	}
	q := Question{ID: row.ID, Text: strings.TrimSpace(row.Question)}
	switch {
	case q.ID == "" || q.Text == "":
		return errors.New("the question has no id or no text: want id and question")
	case e.byID[q.ID] != nil || e.byText[q.Text] != nil:
		return fmt.Errorf("question %s is there twice", q.ID)
	}
	for _, model := range []string{small, large} {
		if _, ok := row.Responses[model]; !ok {
			return fmt.Errorf("question %s has no answer: want text and correct in responses.%s", q.ID, model)
		}
	}
	e.questions = append(e.questions, q)
	e.byText[q.Text], e.byID[q.ID] = row.Responses, row.Responses
	return nil
}
