(** * No mechanism has less expected loss than the bound.

    The certificate holds an integer multiplier of every secret and, for every report, a tree of the edges of the
    claim. The trees become flows inside this file, and only the flows are used in the proof: wrong trees can prove
    less, never more. The mechanism of the theorem is any family of real numbers P(y | u) that is private along the
    edges, with the true exponential. *)
From Coq Require Import ZArith List Bool Reals Lia Lra.
From Mechdesign Require Import Exponential Edges.
Import ListNotations.
Open Scope Z_scope.

(** ** Trees of values.

    The keys [], [false], [true], [false; false] and so on are the paths to the indices 0, 1, 2, 3 and so on. A value
    that is not in the tree is [none]. *)
Definition key := list bool.

Fixpoint next (k : key) : key :=
  match k with [] => [false] | false :: k' => true :: k' | true :: k' => false :: next k' end.

Fixpoint key_of (u : nat) : key := match u with O => [] | S u' => next (key_of u') end.

Fixpoint index_of (k : key) : nat :=
  match k with [] => O | false :: k' => 2 * index_of k' + 1 | true :: k' => 2 * index_of k' + 2 end.

Lemma index_of_next : forall k, index_of (next k) = S (index_of k).
Proof. induction k as [| [|] k IH]; simpl; lia. Qed.

Lemma index_of_key : forall u, index_of (key_of u) = u.
Proof. induction u as [| u IH]; simpl; [reflexivity | rewrite index_of_next, IH; reflexivity]. Qed.

Inductive tree (A : Type) := Leaf | Node (left : tree A) (value : A) (right : tree A).
Arguments Leaf {A}. Arguments Node {A}.

Section Trees.
Context {A : Type}.
Variables (none : A) (P : A -> Prop).

Fixpoint find (k : key) (t : tree A) {struct t} : A :=
  match t, k with
  | Leaf, _ => none
  | Node _ x _, [] => x
  | Node l _ _, false :: k' => find k' l
  | Node _ _ r, true :: k' => find k' r
  end.

Fixpoint single (k : key) (x : A) : tree A :=
  match k with
  | [] => Node Leaf x Leaf
  | false :: k' => Node (single k' x) none Leaf
  | true :: k' => Node Leaf none (single k' x)
  end.

(** Replace the value x at key k by f x. *)
Fixpoint change (f : A -> A) (k : key) (t : tree A) {struct t} : tree A :=
  match t, k with
  | Leaf, _ => single k (f none)
  | Node l x r, [] => Node l (f x) r
  | Node l x r, false :: k' => Node (change f k' l) x r
  | Node l x r, true :: k' => Node l x (change f k' r)
  end.

(** All values of a tree have a property: so have those that it finds. *)
Fixpoint all (t : tree A) : Prop := match t with Leaf => True | Node l x r => all l /\ P x /\ all r end.

Lemma all_find : P none -> forall t k, all t -> P (find k t).
Proof. intros N. induction t as [| l IL x r IR]; intros [| [|] k]; simpl; intuition. Qed.

Lemma all_change : forall f, P none -> (forall x, P (f x)) -> forall t k, all t -> all (change f k t).
Proof.
  intros f N F. assert (S : forall x k, P x -> all (single k x)) by (induction k as [| [|] k IH]; simpl; auto).
  induction t as [| l IL x r IR]; intros [| [|] k]; simpl; intuition.
Qed.
End Trees.

(** ** The check. *)

(** An edge in one direction, an integer factor with factor / 2^w <= e^-length, and whether that factor is proved. *)
Record arc := Arc { from : key; to : key; nats : Z; factor : Z; is_usable : bool }.

(** Flow on the constraint P(from) <= e^length P(to) of one report. *)
Record flow := Flow { on : arc; amount : Z }.

(** A step of a tree joins a child to its parent by the edge of this index; [child_is_tail] tells the direction. *)
Record step := Step { edge_key : key; child_is_tail : bool }.

(** One report: its loss for every secret, by objective, and its tree, children before their parents. *)
Record column := Column { costs : list (list Z); steps : list step }.

Record certificate := Certificate {
  graph : list edge; nats_denominator : Z;   (** the claim *)
  weights : list Z;                          (** of the objectives; one objective has weight 1 *)
  multipliers : list Z;
  columns : list column
}.

Section Check.
Variables (w : Z) (k : nat).

Definition arc_of (q : Z) (e : edge) (forward : bool) : arc :=
  let f := exp_lower w k (- num e) q in
  let usable := 0 <=? one_plus w k (- num e) q in
  let a := key_of (tail e) in let b := key_of (head e) in
  if forward then Arc a b (num e) f usable else Arc b a (num e) f usable.

(** What is left of every secret: its cost minus its multiplier, times 2^w, and the flows. *)
Definition residual := tree Z.

Definition add_at (u : key) (d : Z) (r : residual) : residual := change 0 (Z.add d) u r.

(** Flow x of an arc takes one x = 2^w x from the residual of [to] and gives factor x to that of [from]. *)
Definition push (one : Z) (r : residual) (f : flow) : residual :=
  add_at (from (on f)) (amount f * factor (on f)) (add_at (to (on f)) (- (amount f * one)) r).

(** The flow that settles the residual of a child: what it lacks is taken from its parent, what is left is given. *)
Definition settle (r : residual) (child_to_parent parent_to_child : arc) : flow :=
  let x := find 0 (from child_to_parent) r in
  if x <? 0 then Flow child_to_parent (- (x / Z.max 1 (factor child_to_parent))) else Flow parent_to_child (Z.shiftr x w).

(** Both arcs of every edge, by index. *)
Definition arcs := tree (option (arc * arc)).

Fixpoint arcs_from (q : Z) (i : key) (es : list edge) (m : arcs) : arcs :=
  match es with
  | [] => m
  | e :: es' => arcs_from q (next i) es' (change None (fun _ => Some (arc_of q e true, arc_of q e false)) i m)
  end.

Definition arcs_of (q : Z) (es : list edge) : arcs := arcs_from q [] es Leaf.

(** Settle all steps of a tree; the residual of the end proves the report. *)
Fixpoint settle_all (one : Z) (m : arcs) (r : residual) (ss : list step) : option residual :=
  match ss with
  | [] => Some r
  | s :: ss' =>
      match find None (edge_key s) m with
      | None => None
      | Some (forward, backward) =>
          let f := if child_is_tail s then settle r forward backward else settle r backward forward in
          if (0 <=? amount f) && is_usable (on f) then settle_all one m (push one r f) ss' else None
      end
  end.

(** Add x times each cost, from secret u on. *)
Fixpoint add_costs (x : Z) (u : key) (c : list Z) (r : residual) : residual :=
  match c with [] => r | y :: c' => add_costs x (next u) c' (add_at u (x * y) r) end.

(** Add the weighted sum of the costs of a report, from objective i on. *)
Fixpoint add_weighted (one : Z) (i : nat) (ws : list Z) (cs : list (list Z)) (r : residual) : residual :=
  match ws with
  | [] => r
  | x :: ws' => add_weighted one (S i) ws' cs (add_costs (x * one) [] (nth i cs []) r)
  end.

Fixpoint none_below_zero (r : residual) : bool :=
  match r with Leaf => true | Node a x b => (0 <=? x) && none_below_zero a && none_below_zero b end.

(** The residual r before any cost holds the multipliers. *)
Definition column_holds (one : Z) (m : arcs) (ws : list Z) (r : residual) (c : column) : bool :=
  match settle_all one m (add_weighted one 0 ws (costs c) r) (steps c) with
  | Some r' => none_below_zero r'
  | None => false
  end.

(** The whole check: integers in, true or false out. *)
Definition check_bound (b : certificate) : bool :=
  (0 <=? w) && (0 <? nats_denominator b) && forallb (Z.leb 0) (weights b) &&
  forallb (column_holds (2 ^ w) (arcs_of (nats_denominator b) (graph b)) (weights b)
             (add_costs (- 2 ^ w) [] (multipliers b) Leaf)) (columns b).

Open Scope R_scope.

(** Sum over secrets u of r(u) g(u), for lists and for trees. *)
Fixpoint dot (r : list Z) (g : nat -> R) : R :=
  match r with [] => 0 | x :: r' => IZR x * g O + dot r' (fun i => g (S i)) end.

Fixpoint total (r : residual) (g : key -> R) : R :=
  match r with
  | Leaf => 0
  | Node a x b => total a (fun u => g (false :: u)) + IZR x * g [] + total b (fun u => g (true :: u))
  end.

Lemma total_add_at : forall d r u g, total (add_at u d r) g = total r g + IZR d * g u.
Proof.
  assert (S : forall d u g, total (single 0%Z u d) g = IZR d * g u).
  { induction u as [| [|] u IH]; simpl; intros; try rewrite IH; ring. }
  unfold add_at. induction r as [| a IA x b IB]; simpl; intros u g; [rewrite S, Z.add_0_r; ring |].
  destruct u as [| [|] u]; simpl; rewrite ?IA, ?IB, ?plus_IZR; ring.
Qed.

Lemma total_nonnegative : forall r g, none_below_zero r = true -> (forall u, 0 <= g u) -> 0 <= total r g.
Proof.
  induction r as [| a IA x b IB]; simpl; intros g H G; [lra |].
  apply andb_prop in H as [H B]. apply andb_prop in H as [X H]. apply Z.leb_le, IZR_le in X.
  pose proof (IA (fun u => g (false :: u)) H (fun u => G _)). pose proof (Rmult_le_pos _ _ X (G [])).
  pose proof (IB (fun u => g (true :: u)) B (fun u => G _)). lra.
Qed.

Lemma dot_same : forall r g h, (forall i, (i < length r)%nat -> g i = h i) -> dot r g = dot r h.
Proof.
  induction r as [| x r IH]; simpl; intros g h H; [reflexivity |].
  rewrite H by lia. rewrite (IH (fun i => g (S i)) (fun i => h (S i))); [reflexivity | intros; apply H; lia].
Qed.

(** A function of secrets, by key. *)
Definition by_key (g : nat -> R) (u : key) : R := g (index_of u).

Lemma total_add_costs : forall x c u r g,
  total (add_costs x u c r) (by_key g) = total r (by_key g) + IZR x * dot c (fun i => g (index_of u + i)%nat).
Proof.
  induction c as [| y c IH]; simpl; intros; [ring |].
  rewrite IH, total_add_at, mult_IZR, index_of_next. unfold by_key at 2. rewrite Nat.add_0_r.
  rewrite (dot_same c _ (fun i => g (index_of u + S i)%nat)); [ring |]. intros. f_equal. lia.
Qed.

(** ** Flow on a constraint that a mechanism satisfies cannot raise the sum. *)

Definition satisfies (q : Z) (g : key -> R) (a : arc) : Prop := g (from a) <= exp (IZR (nats a) / IZR q) * g (to a).

Definition factor_is_right (q : Z) (a : arc) : Prop :=
  factor a = exp_lower w k (- nats a) q /\ is_usable a = (0 <=? one_plus w k (- nats a) q)%Z.

Lemma factor_below : forall q g a, (0 <= w)%Z -> (0 < q)%Z -> factor_is_right q a ->
  is_usable a = true -> 0 <= g (from a) -> satisfies q g a ->
  IZR (factor a) * g (from a) <= IZR (2 ^ w) * g (to a).
Proof.
  intros q g a W Q [F U] O G S. rewrite F. rewrite U in O. apply Z.leb_le in O. unfold satisfies in S.
  eapply Rle_trans; [apply exp_lower_times; assumption |].
  apply Rmult_le_compat_l; [left; apply power_positive_real, W |].
  replace (IZR (- nats a) / IZR q) with (- (IZR (nats a) / IZR q)) by (rewrite opp_IZR; field; apply not_0_IZR; lia).
  apply Rmult_le_compat_l with (r := exp (- (IZR (nats a) / IZR q))) in S; [| left; apply exp_pos].
  rewrite <- Rmult_assoc, <- exp_plus, Rplus_opp_l, exp_0, Rmult_1_l in S. exact S.
Qed.

Lemma push_below : forall q r f g, (0 <= w)%Z -> (0 < q)%Z -> factor_is_right q (on f) -> (0 <= amount f)%Z ->
  is_usable (on f) = true -> (forall u, 0 <= g u) -> satisfies q g (on f) -> total (push (2 ^ w) r f) g <= total r g.
Proof.
  intros q r f g W Q F A O G S. apply IZR_le in A. unfold push. rewrite !total_add_at, opp_IZR, !mult_IZR.
  pose proof (factor_below q g (on f) W Q F O (G _) S) as B.
  apply Rmult_le_compat_l with (r := IZR (amount f)) in B; [lra | exact A].
Qed.

(** Every pair of arcs in the tree comes from an edge of the claim. *)
Definition of_edges (q : Z) (es : list edge) (p : option (arc * arc)) : Prop :=
  match p with None => True | Some (f, b) => exists e, In e es /\ f = arc_of q e true /\ b = arc_of q e false end.

Lemma arcs_from_edges : forall q all_edges es i m, (forall e, In e es -> In e all_edges) ->
  all (of_edges q all_edges) m -> all (of_edges q all_edges) (arcs_from q i es m).
Proof.
  induction es as [| e es IH]; simpl; intros i m I M; [exact M |].
  apply IH; [auto |]. apply all_change; [exact Logic.I | | exact M]. intros _. exists e. auto.
Qed.

Lemma arcs_of_edges : forall q es u, of_edges q es (find None u (arcs_of q es)).
Proof. intros. apply all_find; [exact Logic.I |]. apply arcs_from_edges; simpl; auto. Qed.

(** A mechanism column g is private along the edges, either way. *)
Definition private_column (q : Z) (es : list edge) (g : nat -> R) : Prop :=
  forall e, In e es ->
    g (tail e) <= exp (IZR (num e) / IZR q) * g (head e) /\ g (head e) <= exp (IZR (num e) / IZR q) * g (tail e).

Lemma settle_all_below : forall q es g, (0 <= w)%Z -> (0 < q)%Z -> (forall i, 0 <= g i) -> private_column q es g ->
  forall ss r r', settle_all (2 ^ w) (arcs_of q es) r ss = Some r' -> total r' (by_key g) <= total r (by_key g).
Proof.
  intros q es g W Q G P. induction ss as [| s ss IH]; intros r r' H; simpl in H; [injection H as <-; lra |].
  pose proof (arcs_of_edges q es (edge_key s)) as M. destruct (find _ _ _) as [[f b] |]; [| discriminate].
  destruct M as [e [I [-> ->]]]. destruct (P e I) as [P1 P2].
  set (x := if child_is_tail s then _ else _) in H.
  destruct ((0 <=? amount x)%Z && is_usable (on x)) eqn:A; [| discriminate].
  apply andb_prop in A as [A U]. apply Z.leb_le in A. apply Rle_trans with (1 := IH _ _ H).
  assert (X : on x = arc_of q e true \/ on x = arc_of q e false).
  { unfold x, settle. destruct (child_is_tail s); destruct (_ <? 0)%Z; simpl; auto. }
  apply push_below with q; try assumption; try (intro; apply G);
    destruct X as [-> | ->]; unfold satisfies, by_key; simpl; rewrite ?index_of_key; try assumption; split; reflexivity.
Qed.

(** ** One report: the multipliers cost no more than it. *)

(** The weighted sum of the figures t of the objectives, from objective i on. *)
Fixpoint weighted (i : nat) (ws : list Z) (t : nat -> R) : R :=
  match ws with [] => 0 | x :: ws' => IZR x * t i + weighted (S i) ws' t end.

Lemma weighted_plus : forall s t ws i, weighted i ws (fun j => s j + t j) = weighted i ws s + weighted i ws t.
Proof. induction ws as [| x ws IH]; simpl; intros; [ring | rewrite IH; ring]. Qed.

Lemma weighted_constant : forall c ws i, weighted i ws (fun _ => c) = IZR (fold_right Z.add 0%Z ws) * c.
Proof. induction ws as [| x ws IH]; simpl; intros; [ring | rewrite IH, plus_IZR; ring]. Qed.

Lemma weighted_below : forall s t ws i, forallb (Z.leb 0) ws = true ->
  (forall j, (i <= j < i + length ws)%nat -> s j <= t j) -> weighted i ws s <= weighted i ws t.
Proof.
  induction ws as [| x ws IH]; simpl; intros i H L; [lra |].
  apply andb_prop in H as [X H]. apply Z.leb_le, IZR_le in X.
  apply Rplus_le_compat; [apply Rmult_le_compat_l; [exact X | apply L; lia] |].
  apply IH; [exact H | intros; apply L; lia].
Qed.

Lemma total_add_weighted : forall one g cs ws i r, total (add_weighted one i ws cs r) (by_key g) =
  total r (by_key g) + IZR one * weighted i ws (fun j => dot (nth j cs []) g).
Proof.
  induction ws as [| x ws IH]; simpl; intros i r; [ring |].
  rewrite IH, total_add_costs, mult_IZR. change (fun u => g (index_of [] + u)%nat) with g. ring.
Qed.

Lemma column_below : forall q es ws l c g, (0 <= w)%Z -> (0 < q)%Z ->
  column_holds (2 ^ w) (arcs_of q es) ws (add_costs (- 2 ^ w) [] l Leaf) c = true ->
  (forall i, 0 <= g i) -> private_column q es g -> dot l g <= weighted 0 ws (fun j => dot (nth j (costs c) []) g).
Proof.
  intros q es ws l c g W Q H G P. unfold column_holds in H.
  destruct (settle_all _ _ _ _) as [r |] eqn:E; [| discriminate].
  pose proof (settle_all_below q es g W Q G P _ _ _ E) as B.
  pose proof (total_nonnegative r (by_key g) H (fun u => G _)) as N. pose proof (power_positive_real w W) as D.
  rewrite total_add_weighted, total_add_costs, opp_IZR in B.
  change (fun u => g (index_of [] + u)%nat) with g in B. simpl total in B.
  apply Rmult_le_reg_l with (IZR (2 ^ w)); [exact D | lra].
Qed.

(** ** Mechanisms. *)

(** The expected loss of P by the objective i: the sum over reports y and secrets u of cost(u, y) P(y | u). *)
Fixpoint loss (i : nat) (cs : list column) (P : nat -> nat -> R) (y : nat) : R :=
  match cs with [] => 0 | c :: cs' => dot (nth i (costs c) []) (fun u => P u y) + loss i cs' P (S y) end.

(** The sum of P(y | u) over the reports y. *)
Fixpoint row_sum (m : nat) (P : nat -> nat -> R) (u y : nat) : R :=
  match m with O => 0 | S m' => P u y + row_sum m' P u (S y) end.

(** A mechanism: probabilities that sum to 1 for every secret, private along every edge of the claim. *)
Record mechanism (b : certificate) (P : nat -> nat -> R) : Prop := Mechanism {
  nonnegative : forall u y, 0 <= P u y;
  sums_to_one : forall u, (u < length (multipliers b))%nat -> row_sum (length (columns b)) P u 0 = 1;
  private : forall y, private_column (nats_denominator b) (graph b) (fun u => P u y)
}.

Lemma dot_plus : forall r g h, dot r (fun i => g i + h i) = dot r g + dot r h.
Proof.
  induction r as [| x r IH]; simpl; intros; [ring |].
  rewrite (IH (fun i => g (S i)) (fun i => h (S i))). ring.
Qed.

Lemma dot_constant : forall c r, dot r (fun _ => c) = IZR (fold_right Z.add 0%Z r) * c.
Proof. induction r as [| x r IH]; simpl; [ring | rewrite IH, plus_IZR; ring]. Qed.

Lemma columns_below : forall q es ws l P, (0 <= w)%Z -> (0 < q)%Z -> (forall u y, 0 <= P u y) ->
  (forall y, private_column q es (fun u => P u y)) -> forall cs y,
  forallb (column_holds (2 ^ w) (arcs_of q es) ws (add_costs (- 2 ^ w) [] l Leaf)) cs = true ->
  dot l (fun u => row_sum (length cs) P u y) <= weighted 0 ws (fun j => loss j cs P y).
Proof.
  intros q es ws l P W Q N PR. induction cs as [| c cs IH]; simpl; intros y H.
  - rewrite dot_constant, weighted_constant. lra.
  - apply andb_prop in H as [C H]. rewrite dot_plus, weighted_plus.
    apply Rplus_le_compat; [apply column_below with q es; auto | apply IH, H].
Qed.

(** ** The theorem: the weighted losses of every mechanism are at least the sum of the multipliers. *)
Theorem weighted_losses_above : forall b, check_bound b = true -> forall P, mechanism b P ->
  IZR (fold_right Z.add 0%Z (multipliers b)) <= weighted 0 (weights b) (fun j => loss j (columns b) P 0).
Proof.
  intros b C P [N S PR]. unfold check_bound in C.
  apply andb_prop in C as [C H]. apply andb_prop in C as [C _]. apply andb_prop in C as [W Q].
  apply Z.leb_le in W. apply Z.ltb_lt in Q. rewrite <- (Rmult_1_r (IZR (fold_right _ _ _))), <- dot_constant.
  rewrite (dot_same _ _ (fun u => row_sum (length (columns b)) P u 0)).
  - apply columns_below with (nats_denominator b) (graph b); assumption.
  - intros i L. symmetry. apply S, L.
Qed.

(** One objective: no mechanism that is private along the edges has less expected loss than the bound. *)
Corollary no_mechanism_below : forall b, check_bound b = true -> weights b = [1%Z] -> forall P, mechanism b P ->
  IZR (fold_right Z.add 0%Z (multipliers b)) <= loss 0 (columns b) P 0.
Proof.
  intros b C O P M. pose proof (weighted_losses_above b C P M) as H. rewrite O in H. simpl in H. lra.
Qed.

Lemma weights_nonnegative : forall b, check_bound b = true -> forallb (Z.leb 0) (weights b) = true.
Proof. unfold check_bound. intros b C. rewrite !andb_true_iff in C. tauto. Qed.

(** Several priors or losses: a mechanism whose loss is at most M by every objective has M sum(weights) >= bound. *)
Corollary no_mechanism_below_worst : forall b, check_bound b = true -> forall P, mechanism b P ->
  forall M, (forall i, (i < length (weights b))%nat -> loss i (columns b) P 0 <= M) ->
  IZR (fold_right Z.add 0%Z (multipliers b)) <= IZR (fold_right Z.add 0%Z (weights b)) * M.
Proof.
  intros b C P H M L. rewrite <- (weighted_constant M _ 0). eapply Rle_trans; [apply (weighted_losses_above b C P H) |].
  apply weighted_below; [apply weights_nonnegative, C | intros j J; apply L; lia].
Qed.

(** Limits on further losses: the first objective is minimised, and every other stays within its limit. *)
Corollary no_mechanism_below_within_limits : forall b x ws, check_bound b = true -> weights b = x :: ws ->
  forall P, mechanism b P -> forall limits : nat -> R,
  (forall j, (1 <= j <= length ws)%nat -> loss j (columns b) P 0 <= limits j) ->
  IZR (fold_right Z.add 0%Z (multipliers b)) - weighted 1 ws limits <= IZR x * loss 0 (columns b) P 0.
Proof.
  intros b x ws C E P H limits A. pose proof (weighted_losses_above b C P H) as B.
  pose proof (weights_nonnegative b C) as N. rewrite E in B, N. simpl in B, N. apply andb_prop in N as [_ N].
  assert (L : weighted 1 ws (fun j => loss j (columns b) P 0) <= weighted 1 ws limits).
  { apply weighted_below; [exact N | intros j J; apply A; lia]. }
  lra.
Qed.
End Check.
