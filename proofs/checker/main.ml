(* mechdesign-check FILE.proof: reads the integers of a file and calls the proved checks. Exits 0 if all hold.

   The reader is not proved. It takes the integers in the order that README.md describes. *)
open Checks

let places = Integers.of_int 320
let squarings = 140

exception Unreadable of string

(* The next token of a file, of digits and minus signs. *)
let tokens file =
  let channel = open_in_bin file in
  let text = really_input_string channel (in_channel_length channel) in
  close_in channel;
  let position = ref 0 in
  let rec skip i = if i < String.length text && (text.[i] = ' ' || text.[i] = '\n') then skip (i + 1) else i in
  let rec finish i =
    if i = String.length text || text.[i] = ' ' || text.[i] = '\n' then i
    else if text.[i] = '-' || ('0' <= text.[i] && text.[i] <= '9') then finish (i + 1)
    else raise (Unreadable (Printf.sprintf "not an integer: %C" text.[i])) in
  fun () ->
    let start = skip !position in
    position := finish start;
    if start = !position then raise (Unreadable "the file ends early");
    String.sub text start (!position - start)

(* sum / 2^bits in decimals, rounded down after at least 15 digits. *)
let decimal sum bits =
  let ten = Integers.of_int 10 in
  let one = Integers.power (Integers.of_int 2) (Integers.of_int bits) in
  let rec scaled digits =
    let quotient = Integers.floor_div (Integers.mul sum (Integers.power ten (Integers.of_int digits))) one in
    if digits < 300 && Integers.lt (Integers.abs quotient) (Integers.power ten (Integers.of_int 15)) then scaled (digits + 1)
    else (quotient, digits) in
  let quotient, digits = scaled 0 in
  let text = Integers.to_string (Integers.abs quotient) in
  let text = if String.length text <= digits then String.make (digits + 1 - String.length text) '0' ^ text else text in
  let whole = String.length text - digits in
  let sign = if Integers.sign quotient < 0 then "-" else "" in
  if digits = 0 then sign ^ text else sign ^ String.sub text 0 whole ^ "." ^ String.sub text whole digits

let main file =
  let token = tokens file in
  let next () =
    let word = token () in
    try Integers.of_string word with Invalid_argument _ -> raise (Unreadable ("not an integer: " ^ word)) in
  let small () =
    let word = token () in
    match int_of_string_opt word with
    | Some x when 0 <= x && x <= 1_000_000_000 -> x
    | _ -> raise (Unreadable ("not a number of things: " ^ word)) in
  let list count read = List.init count (fun _ -> read ()) in
  if small () <> 1 then raise (Unreadable "not format 1");
  let n = small () in
  let m = small () in
  let masses = list n (fun () -> list m next) in
  let place () =
    let u = small () in
    if u >= n then raise (Unreadable (Printf.sprintf "place %d of %d" u n));
    u in
  let rows_valid = n > 0 && List.for_all (is_row m) masses in
  let known_edges = ref None and known_plane = ref None in
  let holds = ref true and claims = ref 0 in
  let report what verdict =
    incr claims;
    if not verdict then holds := false;
    Printf.printf "%s: %s\n%!" what (if verdict then "proved" else "NOT PROVED") in
  let graph () =
    let count = small () in
    let denominator = next () in
    let edges = list count (fun () -> let tail = place () in let head = place () in { tail; head; num = next () }) in
    known_edges := Some (edges, denominator);
    (count, edges, denominator) in
  let edges () =
    let count, edges, denominator = graph () in
    report (Printf.sprintf "private along %d edges, %d x %d" count n m)
      (check_edges places squarings { rows = masses; edges; denominator }) in
  let plane () =
    let scale = next () in
    let eps_num = next () in
    let eps_den = next () in
    let length_denominator = next () in
    let places_of_rows = List.map (fun masses -> let px = next () in { px; py = next (); masses }) masses in
    let reason () = match small () with
      | 0 -> Direct (next ())
      | 1 -> Through (place ())
      | _ -> raise (Unreadable "a pair is 0 length or 1 place") in
    let reasons = List.init n (fun u -> list (n - 1 - u) reason) in
    let plane = { places = places_of_rows; reasons; length_denominator; eps_num; eps_den; scale } in
    known_plane := Some plane;
    report (Printf.sprintf "private for all pairs of %d places by distance" n) (check_plane places squarings plane) in
  let positions () =
    let one = next () in
    let cells = list (small ()) (fun () -> let around = list 9 place in { around; levels = list 16 next }) in
    report (Printf.sprintf "private between positions of %d cells" (List.length cells))
      (check_positions { area_rows = masses; cells; one }) in
  let listed () =
    let persons = list n next in
    let sets = list (small ()) (fun () ->
      let p = next () in
      let q = next () in
      let members = list (small ()) place in
      (List.init n (fun u -> List.mem u members), (p, q))) in
    report (Printf.sprintf "posterior limited in %d sets" (List.length sets))
      (rows_valid && check_listed persons masses m sets) in
  let largest () =
    let persons = list n next in
    let p = next () in
    let q = next () in
    let count = next () in
    let thresholds = list m next in
    report (Printf.sprintf "posterior limited in any %s places" (Integers.to_string count))
      (rows_valid && Integers.sign q > 0 && check_largest p q count persons masses 0 thresholds) in
  let bound () =
    let graph, nats_denominator = match !known_edges with
      | Some known -> known
      | None -> raise (Unreadable "a bound needs edges before it") in
    let bits = small () in
    let objectives = small () in
    let weights = list objectives next in
    let limits = list (objectives - 1) next in
    let multipliers = list n next in
    let keys = Array.make (List.length graph) [] in
    for i = 1 to Array.length keys - 1 do keys.(i) <- Checks.next keys.(i - 1) done;
    let step () =
      let number = small () in
      if number < 1 || number > Array.length keys then raise (Unreadable (Printf.sprintf "edge %d of %d" number (Array.length keys)));
      { edge_key = keys.(number - 1); child_is_tail = small () = 1 } in
    if small () <> m then raise (Unreadable "a bound needs all reports");
    let columns = list m (fun () ->
      let costs = list objectives (fun () -> list n next) in
      { costs; steps = list (small ()) step }) in
    let certificate = { graph; nats_denominator; weights; multipliers; columns } in
    let holds = check_bound places squarings certificate in
    (* The first objective has weight 1 in the theorem; what the others may weigh at their limits is taken off. *)
    let value = match weights with
      | first :: others when first = Integers.one ->
        let sum = List.fold_left Integers.add Integers.zero in
        Integers.sub (sum multipliers) (sum (List.map2 Integers.mul others limits))
      | _ -> raise (Unreadable "the first objective must have weight 1") in
    let within = if limits = [] then "" else " and within the limits" in
    report (Printf.sprintf "no mechanism private along the edges%s has less loss than %s" within (decimal value bits)) holds;
    match !known_plane with
    | Some plane when check_lengths plane certificate ->
      report "the same for mechanisms that are private by distance" holds
    | _ -> () in
  let rec sections () = match small () with
    | 0 -> ()
    | 1 -> edges (); sections ()
    | 2 -> plane (); sections ()
    | 3 -> positions (); sections ()
    | 4 -> listed (); sections ()
    | 5 -> largest (); sections ()
    | 6 -> bound (); sections ()
    | 7 -> ignore (graph ()); sections ()
    | _ -> raise (Unreadable "unknown section") in
  sections ();
  if !claims = 0 then raise (Unreadable "the file claims nothing");
  if !holds then 0 else 1

let () =
  (* More memory between collections: a file has millions of integers. *)
  Gc.set { (Gc.get ()) with minor_heap_size = 1 lsl 22; space_overhead = 400 };
  match Sys.argv with
  | [| _; file |] ->
    exit (try main file with
      | Unreadable why -> prerr_endline (file ^ ": " ^ why); 2
      | Sys_error why -> prerr_endline why; 2)
  | _ -> prerr_endline "usage: mechdesign-check FILE.proof"; exit 2
