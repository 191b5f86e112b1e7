package temporal

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Status describes how the activity of a run ended.
type Status struct {
	State string `json:"state"` // a journal.State
}

// Drive is the workflow of a run. It starts the activity that runs the pipeline, and starts it again each time a question has
// been answered.
func Drive(ctx workflow.Context, run string) (Status, error) {
	const (
		longest = 365 * 24 * time.Hour
		nudge   = 24 * time.Hour // recovers if a signal was lost
	)
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: longest, HeartbeatTimeout: 15 * time.Second, WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{MaximumInterval: 30 * time.Second},
	})
	signals := workflow.GetSignalChannel(ctx, answered)
	for {
		for signals.ReceiveAsync(nil) { // the answers are in the journal
		}
		var st Status
		if err := workflow.ExecuteActivity(ctx, runActivity, run).Get(ctx, &st); err != nil || st.State != "waiting" {
			return st, err
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() && signals.Len() == 0 {
			return st, workflow.NewContinueAsNewError(ctx, runWorkflow, run)
		}
		signals.ReceiveWithTimeout(ctx, nudge, nil)
		if err := ctx.Err(); err != nil {
			return st, err
		}
	}
}
