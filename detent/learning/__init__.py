"""Machines from data, without a network: prefix trees and state merging. NumPy, no torch."""
