// Client uses the client that oapi-codegen makes of the document of a server: it starts a run, answers
// its question, waits for the result, and lists runs.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
)

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, at string) error {
	c, err := NewClientWithResponses(at)
	if err != nil {
		return err
	}
	var input any = "marble"
	key := "one"
	start := Start{Pipeline: "page", Input: &input, Labels: &map[string]string{"team": "mail"}}
	started, err := c.StartRunWithResponse(ctx, &StartRunParams{IdempotencyKey: &key}, start)
	if err != nil {
		return err
	}
	again, err := c.StartRunWithResponse(ctx, &StartRunParams{IdempotencyKey: &key}, start)
	if err != nil {
		return err
	}
	if started.JSON201 == nil || again.JSON200 == nil || again.JSON200.Id != started.JSON201.Id {
		return fmt.Errorf("started: %s, %s", started.Body, again.Body)
	}
	id, wait := started.JSON201.Id, "20s"
	waits, err := c.GetResultWithResponse(ctx, id, &GetResultParams{Wait: &wait})
	if err != nil {
		return err
	}
	if waits.JSON202 == nil || waits.JSON202.State != Waiting {
		return fmt.Errorf("the result: %s", waits.Body)
	}
	asked, err := c.ListQuestionsOfRunWithResponse(ctx, id, nil)
	if err != nil {
		return err
	}
	if asked.JSON200 == nil || len(asked.JSON200.Questions) != 1 {
		return fmt.Errorf("the questions: %s", asked.Body)
	}
	answer := Answer{Question: asked.JSON200.Questions[0].Path, Response: new("perhaps")}
	wrong, err := c.AnswerQuestionWithResponse(ctx, id, answer)
	if err != nil {
		return err
	}
	if wrong.ApplicationproblemJSON422 == nil {
		return fmt.Errorf("a wrong answer: %s", wrong.Body)
	}
	answer.Response = new("yes")
	if _, err := c.AnswerQuestionWithResponse(ctx, id, answer); err != nil {
		return err
	}
	done, err := c.GetResultWithResponse(ctx, id, &GetResultParams{Wait: &wait})
	if err != nil {
		return err
	}
	if done.JSON200 == nil || done.JSON200.Result == nil {
		return fmt.Errorf("the result: %s", done.Body)
	}
	limit := 1
	list, err := c.ListRunsWithResponse(ctx, &ListRunsParams{State: &[]State{Done, Failed}, Limit: &limit, Labels: &map[string]string{"label.team": "mail"}})
	if err != nil {
		return err
	}
	if list.JSON200 == nil || len(list.JSON200.Runs) != 1 {
		return errors.New(string(list.Body))
	}
	fmt.Println(done.JSON200.Result.Content, list.JSON200.Runs[0].Id == id)
	return nil
}
