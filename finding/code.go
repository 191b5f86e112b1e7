package finding

// A Code is the kind of a finding, for programs.
type Code string

// The codes of package stone. Packages that make steps of their own, such as call and
// plan, add further ones and name them.
const (
	// A read that cannot succeed.

	// MissingProducer is a read of a type that no earlier step produces.
	MissingProducer Code = "missing-producer"
	// SchemaMismatch is a reader or a writer whose schema does not fit the type that is
	// written.
	SchemaMismatch Code = "schema-mismatch"
	// InvalidLens is a lens along a field that the latest node does not have.
	InvalidLens Code = "invalid-lens"
	// FanoutNotReduced is a fan-out without a reducer.
	FanoutNotReduced Code = "fanout-not-reduced"
	// LaneTypeReadAsOne is a read of the nearest node of a type that only lanes produce.
	LaneTypeReadAsOne Code = "lane-type-read-as-one"

	// A name that is missing, unusable, or used twice.

	// NoName is an ashlar without a name.
	NoName Code = "no-name"
	// BadName is a name of an ashlar or a type that paths and events cannot show.
	BadName Code = "bad-name"
	// DuplicateName is one name of two different children of an ashlar.
	DuplicateName Code = "duplicate-name"
	// DuplicateQuestion is one name of two different questions.
	DuplicateQuestion Code = "duplicate-question"
	// DuplicateBranch is a value with two branches in one match.
	DuplicateBranch Code = "duplicate-branch"
	// MissingBranch is a possible value for which a match has no branch.
	MissingBranch Code = "missing-branch"
	// UnreachableBranch is a branch for a value that cannot occur.
	UnreachableBranch Code = "unreachable-branch"

	// An ashlar that was constructed wrongly.

	// NilAshlar is a zero Ashlar.
	NilAshlar Code = "nil-ashlar"
	// NilBody is a leaf, a condition or another function that is nil.
	NilBody Code = "nil-body"
	// EmptyComposite is a sequence, a match or a parallel without children.
	EmptyComposite Code = "empty-composite"
	// BadOption is an option with an invalid value.
	BadOption Code = "bad-option"
	// BadType is a dag.Type that is nil, has no schema, or loses data.
	BadType Code = "bad-type"
	// BadBranch is a branch whose value has no JSON.
	BadBranch Code = "bad-branch"
	// BadDetail is a detail whose Check panicked.
	BadDetail Code = "bad-detail"

	// EffectNotGranted is an effect outside the grant of the run.
	EffectNotGranted Code = "effect-not-granted"

	// Warnings.

	// UnknownEffect is an effect that is probably a mistake; see effect.Check.
	UnknownEffect Code = "unknown-effect"
	// MaybeUnavailable is a read of a type that only some ways through the pipeline produce.
	MaybeUnavailable Code = "maybe-unavailable"
	// UnusedProduce is a produced type that nothing reads.
	UnusedProduce Code = "unused-produce"
	// LanesMayBeLost is a fan-out that drops failed lanes without declaring how many may
	// fail.
	LanesMayBeLost Code = "lanes-may-be-lost"
	// NoFrontend is an Ask in a run without a Frontend and without a journal.
	NoFrontend Code = "no-frontend"
	// NothingToReduce is a Reduce without a fan-out before it.
	NothingToReduce Code = "nothing-to-reduce"
)
