package eval

import "time"

func init() { patience = time.Millisecond }
