package main

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	"github.com/flyteorg/flyte/flytepropeller/pkg/compiler/validators"
)

// validateLiterals wants a name and a value for each literal
// (flyteadmin/pkg/manager/impl/validation/validation.go:230).
func validateLiterals(literals *core.LiteralMap, fieldName string) error {
	for name, literal := range literals.GetLiterals() {
		if name == "" {
			return invalid("missing key in %s", fieldName)
		}
		if literal.GetValue() == nil && literal.GetOffloadedMetadata() == nil {
			return invalid("missing valid literal in %s %s", fieldName, name)
		}
		if datetime := literal.GetScalar().GetPrimitive().GetDatetime(); datetime != nil {
			if err := validateDatetime(datetime); err != nil {
				return err
			}
		}
	}
	return nil
}

// validateParameters wants of each parameter a type and either a fitting default or the word required
// (validation/validation.go:264). Artifact queries are off, as they are by default (:253).
func validateParameters(parameters *core.ParameterMap, fieldName string) error {
	for name, parameter := range parameters.GetParameters() {
		kind := parameter.GetVar().GetType()
		switch {
		case parameter.GetArtifactQuery() != nil:
			return invalid("artifact mode not enabled but query found %s %s", fieldName, name)
		case name == "":
			return invalid("missing key in %s", fieldName)
		case kind == nil:
			return invalid("The Variable component of the Parameter %s in %s either is missing, or has a missing Type",
				name, fieldName)
		case parameter.GetDefault() == nil && !parameter.GetRequired():
			return invalid("Invalid variable %s in %s - variable has neither default, nor is required. "+
				"One must be specified", name, fieldName)
		}
		value := parameter.GetDefault()
		if value == nil {
			continue
		}
		given, err := literalType(name, value)
		if err != nil {
			return err
		}
		if !validators.AreTypesCastable(given, kind) {
			return invalid("Type mismatch for Parameter %s in %s has type %s, expected %s", name, fieldName, kind, given)
		}
		if kind.GetSimple() == core.SimpleType_DATETIME {
			if err := validateDatetime(value.GetScalar().GetPrimitive().GetDatetime()); err != nil {
				return err
			}
		}
	}
	return nil
}

func validateDatetime(datetime *timestamppb.Timestamp) error {
	if err := datetime.CheckValid(); err != nil {
		return invalid("%s", err)
	}
	return nil
}

func literalType(name string, literal *core.Literal) (*core.LiteralType, error) {
	kind := validators.LiteralTypeForLiteral(literal)
	if err := validators.ValidateLiteralType(kind); err != nil {
		return nil, invalid("Failed to validate literal type for [%s] with err: %s", name, err)
	}
	return kind, nil
}

// expectedInputs is what a launch plan asks of who launches it: its own defaults, and every input of the
// workflow that it neither defaults nor fixes, as required.
// Source: flyteadmin/pkg/manager/impl/validation/launch_plan_validator.go:112.
func expectedInputs(
	wanted *core.VariableMap, fixed *core.LiteralMap, defaults *core.ParameterMap,
) (*core.ParameterMap, error) {
	variables := wanted.GetVariables()
	expected := map[string]*core.Parameter{}
	if len(variables) == 0 {
		if given := len(defaults.GetParameters()); given > 0 {
			return nil, invalid("invalid launch plan default inputs, expected none but found %d", given)
		}
		if given := len(fixed.GetLiterals()); given > 0 {
			return nil, invalid("invalid launch plan fixed inputs, expected none but found %d", given)
		}
		return &core.ParameterMap{Parameters: expected}, nil
	}
	for name, parameter := range defaults.GetParameters() {
		variable, ok := variables[name]
		if !ok {
			return nil, invalid("unexpected default_input %s", name)
		}
		if !validators.AreTypesCastable(parameter.GetVar().GetType(), variable.GetType()) {
			return nil, invalid("invalid default_input wrong type %s, expected %v, got %v instead",
				name, parameter.GetVar().GetType(), variable.GetType())
		}
	}
	for name, literal := range fixed.GetLiterals() {
		variable, ok := variables[name]
		if !ok {
			return nil, invalid("unexpected fixed_input %s", name)
		}
		given, err := literalType(name, literal)
		if err != nil {
			return nil, err
		}
		if !validators.AreTypesCastable(given, variable.GetType()) {
			return nil, invalid("invalid fixed_input wrong type %s, expected %v, got %v instead",
				name, variable.GetType(), given)
		}
	}
	for name, variable := range variables {
		if parameter, ok := defaults.GetParameters()[name]; ok {
			expected[name] = parameter
		} else if _, ok := fixed.GetLiterals()[name]; !ok {
			expected[name] = &core.Parameter{
				Var:      &core.Variable{Type: variable.GetType(), Description: variable.GetDescription()},
				Behavior: &core.Parameter_Required{Required: true},
			}
		}
	}
	return &core.ParameterMap{Parameters: expected}, nil
}

// executionInputs is what an execution runs with: the caller's inputs, the launch plan's defaults for the
// rest, and its fixed inputs, which nobody can override.
// Source: flyteadmin/pkg/manager/impl/validation/execution_validator.go:77.
func executionInputs(
	given, fixed *core.LiteralMap, expected *core.ParameterMap,
) (*core.LiteralMap, error) {
	inputs := map[string]*core.Literal{}
	for name, literal := range given.GetLiterals() {
		parameter, ok := expected.GetParameters()[name]
		if !ok {
			return nil, invalid("invalid input %s", name)
		}
		kind, err := literalType(name, literal)
		if err != nil {
			return nil, err
		}
		if !validators.AreTypesCastable(kind, parameter.GetVar().GetType()) {
			return nil, invalid("invalid %s input wrong type. Expected %s, but got %s",
				name, parameter.GetVar().GetType(), kind)
		}
		inputs[name] = literal
	}
	for name, parameter := range expected.GetParameters() {
		if _, ok := inputs[name]; ok {
			continue
		}
		if parameter.GetRequired() {
			return nil, invalid("expected_inputs %s missing", name)
		}
		inputs[name] = parameter.GetDefault()
	}
	for name, literal := range fixed.GetLiterals() {
		if _, ok := inputs[name]; ok {
			return nil, invalid("fixed_inputs %s cannot be overridden", name)
		}
		inputs[name] = literal
	}
	return &core.LiteralMap{Literals: inputs}, nil
}
