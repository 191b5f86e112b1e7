package call

// RefuseRequest and MaxStack are here for the tests.
var RefuseRequest = refuseRequest

const MaxStack = maxStack
