package journal

import (
	"context"

	"github.com/stonelayer/stone/internal/record"
)

// Attempt returns how often the work of the step to which ctx belongs was started, this
// time included. Above 1 it may have been billed already. Outside of a run with a journal
// it is 1. stone.Body.RunID and Path stay the same in every attempt: a service that the
// body calls can recognise a repeated call by them.
func Attempt(ctx context.Context) int { return record.Attempt(ctx) }
