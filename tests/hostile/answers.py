"""The right answer for each hostile file: the code of its error, from which its exit code follows.

A file that no line names is converted: it only looks hostile, or has nothing that an IR cannot express.
"""

from collections.abc import Mapping

REFUSED: Mapping[str, Mapping[str, str]] = {
    "amplification": {
        "ML225": "sparse_int4_of_2000000000",
        "ML227": "pairs_of_20000_classes",
        "ML236": "members_20000 gram_of_100_with_4096_gaps",
        "ML242": "targets_of_2_to_the_28 gram_at_place_2_to_the_30 windows_of_2_to_the_30",
        "ML342": "sparse_strings_of_400000000",
        "ML343": "sparse_tensors_12_of_400000000",
    },
    "files of other kinds": {
        "ML211": "model_that_is_a_folder model_that_is_an_endless_device model_that_is_a_socket",
        "ML212": "model_that_is_a_link_in_a_circle",
        "ML214": (
            "empty one_byte zeros text html json git_lfs_pointer gzip_bomb shell_script pickle tar_with_traversal "
            "zip_with_traversal"
        ),
    },
    "damaged protobuf": {
        "ML214": (
            "truncated_at_10_percent truncated_at_50_percent truncated_at_90_percent endless_varint "
            "length_of_two_gigabytes length_of_2_to_the_63 unknown_wire_type unbalanced_groups "
            "graph_of_a_wrong_wire_type messages_nested_60_deep"
        ),
        "ML220": "output_that_is_not_utf8",
        "ML312": "messages_nested_10000_deep",
    },
    "external data": {
        "ML212": "location_very_long",
        "ML213": (
            "span_negative_offset span_offset_behind_the_end span_offset_of_2_to_the_63 "
            "span_offset_of_2_to_the_70 span_offset_that_wraps span_length_too_large span_length_zero "
            "span_negative_length span_offset_in_words span_offset_with_a_sign_and_spaces "
            "span_offset_of_5000_digits span_offset_in_arabic_digits span_keys_that_are_attributes "
            "shorter_than_declared"
        ),
        "ML216": (
            "location_absolute location_parent location_parents location_parent_inside location_empty "
            "location_nul location_device location_memory_of_the_process location_environment no_location "
            "link_to_a_file_outside link_to_a_link_outside linked_folder_outside link_to_an_endless_device"
        ),
        "ML217": (
            "location_backslashes location_url location_file_url location_unc location_drive location_home "
            "location_variable location_pipe_of_a_shell location_newline missing_file"
        ),
        "ML271": "second_name_of_a_file_outside",
        "ML272": "location_dot a_folder_in_the_place_of_the_data links_in_a_circle named_pipe",
    },
    "sizes": {
        "ML225": (
            "negative_dimension_of_a_tensor tensor_of_2_to_the_62_elements tensor_whose_product_overflows "
            "tensor_of_other_length tensor_in_a_segment"
        ),
        "ML233": "slice_far_outside",
        "ML235": (
            "reshape_to_2_to_the_62 reshape_product_overflows reshape_to_a_negative_size "
            "reshape_with_two_unknown_sizes fill_of_a_negative_size range_of_step_0 "
            "tile_by_a_negative_number top_k_of_2_to_the_62"
        ),
        "ML236": "split_into_2_to_the_40",
        "ML242": (
            "one_hot_of_a_negative_depth reshape_of_5000_dimensions resize_by_2_to_the_60 fill_of_2_to_the_62 "
            "fill_whose_product_overflows range_of_2_to_the_62 expand_to_2_to_the_62 "
            "concatenation_doubled_60_times input_of_2_to_the_62 input_of_2_to_the_63 eye_of_2_to_the_31"
        ),
        "ML301": "tensor_of_an_unknown_type tensor_of_type_0",
    },
    "attributes": {
        "ML227": "pads_of_a_wrong_length attribute_of_another_kind attribute_twice",
        "ML235": "axis_outside permutation_with_repeats permutation_huge einsum_of_many_letters",
        "ML236": (
            "group_0 group_negative group_huge stride_0 stride_negative dilation_0 pads_huge block_size_0 "
            "block_size_negative hidden_size_huge local_response_of_size_0"
        ),
        "ML301": "cast_to_an_unknown_type",
    },
    "graphs": {
        "ML202": "input_of_no_type",
        "ML214": "no_graph",
        "ML220": "no_nodes_and_no_outputs",
        "ML221": "opset_0 opset_of_2_to_the_62",
        "ML223": "undefined_name undefined_output",
        "ML224": "cycle node_that_reads_itself",
        "ML225": "sparse_indices_outside",
        "ML226": (
            "body_with_other_inputs body_without_outputs branches_with_inputs scan_of_more_inputs_than_there_are"
        ),
        "ML227": "missing_body missing_branch",
        "ML228": "function_that_calls_itself functions_in_a_circle",
        "ML302": "operator_without_a_name",
        "ML312": "functions_nested_200_deep",
        "ML342": "sparse_of_2_to_the_62",
        "ML347": "functions_that_expand_to_2_to_the_40",
    },
    "names": {
        "ML344": "a_million_letters",
    },
    "IR files": {
        "ML213": "offset_behind_the_end size_of_2_to_the_62 short_bin",
        "ML214": "billion_laughs external_entity entity_of_the_network parameter_entity empty_xml nul_bytes",
        "ML217": "missing_bin bin_that_is_an_endless_device",
        "ML250": "negative_offset offset_of_2_to_the_64 size_in_words size_of_5000_digits negative_shape",
        "ML251": "repeated_layer",
        "ML252": (
            "edge_from_nowhere edge_from_a_port_that_does_not_exist layer_number_in_words edge_into_a_port_twice"
        ),
        "ML253": "cycle",
        "ML255": "shape_of_2_to_the_62",
        "ML312": "elements_nested_100000_deep",
        "ML330": "version_of_2_to_the_62",
    },
}
"""Class -> code -> the names of the files."""

AT_URLS: Mapping[str, str] = {
    "location_backslashes": "ML216", "location_url": "ML216", "location_file_url": "ML216", "location_unc": "ML216",
    "location_drive": "ML216", "location_very_long": "ML286", "a_folder_in_the_place_of_the_data": "ML217",
    "links_in_a_circle": "ML286",
}
"""External data of models at file:// with another answer than at a path: an object of a store cannot have such a name,
or is not one."""

CODES = {
    (kind, name): code for kind, codes in REFUSED.items() for code, names in codes.items() for name in names.split()
}


def code_of(kind: str, name: str) -> str:
    """The code of a refused file; empty for one that is converted."""
    return CODES.get((kind, name), "")


def exit_code_of(code: str) -> int:
    """The exit code of the command for an error of this code."""
    return int(code[2]) if code else 0
