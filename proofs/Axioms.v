(** * The axioms behind every theorem: those of Coq's real numbers, and none where integers suffice. *)
From Mechdesign Require Import Exponential Rows Edges Plane Sampler Factors Posterior Positions Bound PlaneBound.

Print Assumptions exp_lower_correct.
Print Assumptions row_is_distribution.
Print Assumptions event_within.
Print Assumptions later_use_within.
Print Assumptions reports_within.
Print Assumptions private_along_paths.
Print Assumptions private_for_all.
Print Assumptions private_on_plane.
Print Assumptions private_between_positions.
Print Assumptions posterior_limited.
Print Assumptions posterior_limited_by_area.
Print Assumptions no_mechanism_below.
Print Assumptions no_mechanism_below_worst.
Print Assumptions no_mechanism_below_within_limits.
Print Assumptions no_mechanism_on_plane_below.
Print Assumptions drawn_by_interval.
Print Assumptions draws_a_report.
Print Assumptions factors_within.
