package main

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/admin"
)

// References to flyteadmin/... in this package are to github.com/flyteorg/flyte at v1.16.8.

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

// missing says that a required field is empty (flyteadmin/pkg/manager/impl/shared/errors.go:12).
func missing(field string) error {
	return invalid("missing %s", field)
}

// notFound says that an entity is not there (flyteadmin/pkg/repositories/errors/errors.go:18).
func notFound(entity string, id any) error {
	return status.Errorf(codes.NotFound, "missing entity of type %s with identifier %v", entity, id)
}

func alreadyExists(format string, args ...any) error {
	return status.Errorf(codes.AlreadyExists, format, args...)
}

func exhausted(format string, args ...any) error {
	return status.Errorf(codes.ResourceExhausted, format, args...)
}

// withDetail adds the typed reason that clients read beside the code.
func withDetail(err error, detail protoadapt.MessageV1) error {
	detailed, failed := status.Convert(err).WithDetails(detail)
	if failed != nil {
		return err
	}
	return detailed.Err()
}

// alreadyTerminal refuses what would move an ended execution; Propeller recognises it by its detail
// (flyteadmin/pkg/errors/errors.go:101).
func alreadyTerminal(phase, format string, args ...any) error {
	return withDetail(status.Errorf(codes.FailedPrecondition, format, args...), &admin.EventFailureReason{
		Reason: &admin.EventFailureReason_AlreadyInTerminalState{
			AlreadyInTerminalState: &admin.EventErrorAlreadyInTerminalState{CurrentPhase: phase},
		},
	})
}
